"""The bookies: each id becomes an address, which is connected to and answers a read.

Ids are those that the cluster lists, which only superusers are told, and those of the ledgers of
some topics. A bookie that is asked for an entry which its ledger's metadata says it has, and which
it does not know, is another one than its id says.
"""

from collections.abc import Mapping
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import partial
from threading import Lock

from offloader.check.outcome import Finding, Waiting
from offloader.check.topic_check import FoundTopics, spread
from reader.background import in_thread
from reader.bookkeeper import BookieAccess, bookie_address, probe_bookie
from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from reader.model import LedgerMetadata
from reader.pulsar import AdminClient

_MOST_TOPICS = 5
_MOST_PARTITIONS = 8
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Target:
    """What to ask a bookie for. ``known``: the ledger's metadata says that it has it."""

    bookie: str
    ledger: int = 0
    entry: int = 0
    known: bool = False


def targets(admin: AdminClient, found: FoundTopics, waiting: Waiting) -> list[Target]:
    """One for each bookie that is known of. Raises UnavailableError."""
    waiting(admin.http.url)
    try:
        listed = admin.bookies()
    except (ConfigurationError, NotFoundError):
        listed = []
    known = {bookie: Target(bookie) for bookie in listed}
    for topic in spread(list(found.topics), _MOST_TOPICS):
        for partition in (found.topics[topic] or (found.first_partition(topic),))[
            :_MOST_PARTITIONS
        ]:
            try:
                listing = admin.ledgers(partition, transactions=False)
            except (ConfigurationError, NotFoundError):
                continue  # that is the role's, and the topics', to say
            for one in listing.ledgers:
                if one.metadata is not None and not one.offloaded:
                    for target in _replicas(one.metadata):
                        if not known.get(target.bookie, target).known or target.known:
                            known[target.bookie] = target
    return [known[bookie] for bookie in sorted(known)]


def _replicas(ledger: LedgerMetadata) -> list[Target]:
    """The bookies of the ledger, each with an entry that it has, if that is known."""
    found: dict[str, Target] = {}
    for first, bookies in ledger.ensembles:
        for bookie in bookies:
            found.setdefault(bookie, Target(bookie, ledger.ledger_id, first))
        for entry in range(first, min(first + ledger.ensemble_size, ledger.last_entry + 1)):
            for bookie in ledger.replicas(entry):
                found[bookie] = Target(bookie, ledger.ledger_id, entry, known=True)
    return list(found.values())


def check_bookies(
    asked: list[Target],
    addresses: Mapping[str, str],
    access: BookieAccess,
    waiting: Waiting,
    *,
    timeout: float,
    through_broker: bool,
) -> Finding:
    """Asks all of them side by side.

    ``addresses``: ``pulsar.bookies``; ``timeout``: seconds, of each step; ``through_broker``:
    whether the offloader does without bookies.
    """
    if not asked:
        return Finding.skipped(
            "no ledger names a bookie yet, and only superusers are told which there are"
        )
    places = _Places(asked, addresses, waiting)
    futures = {in_thread(partial(_ask, one, addresses, access, timeout)): one for one in asked}
    wrong: dict[str, PulsarLakeError] = {}
    for future in as_completed(futures):
        one = futures[future]
        places.done(one.bookie)
        try:
            future.result()
        except PulsarLakeError as error:
            wrong[one.bookie] = error
    if not wrong:
        names = [places.of(one.bookie) for one in asked]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        entries = sum(one.known for one in asked)
        gave = f"; {entries} gave an entry of a topic" if entries else ""
        return Finding.ok(
            f"{len(names)} of {len(names)} answer: {', '.join(names[:_MOST_NAMED])}{more}{gave}"
        )
    named = [f"{places.of(bookie)}: {wrong[bookie].message}" for bookie in sorted(wrong)]
    more = f" (and {len(named) - _MOST_NAMED} more)" if len(named) > _MOST_NAMED else ""
    text = f"{len(wrong)} of {len(asked)} do not answer: {'; '.join(named[:_MOST_NAMED])}{more}"
    first = wrong[min(wrong)]
    if through_broker:
        return Finding.warning(text, "none is needed to offload: queries of hot rows are slower")
    return Finding.failed(text, first.hint or _FIX)


_FIX = (
    'start it; or name an address that is reachable from here in [pulsar.bookies], "id" = '
    '"host:port"; or read through the broker: offload.source = "broker"'
)


def _ask(one: Target, addresses: Mapping[str, str], access: BookieAccess, timeout: float) -> None:
    """Raises PulsarLakeError for whatever is wrong with it."""
    address = bookie_address(one.bookie, addresses)
    answer = probe_bookie(address, access, timeout, ledger=one.ledger, entry=one.entry)
    if one.known and answer.lacks_entry:
        raise UnavailableError(
            f"it does not have entry {one.ledger}:{one.entry}, which is there by the ledger's "
            "metadata",
            hint="see whether the address is another bookie's: [pulsar.bookies]",
        )


class _Places:
    """How bookies are named, and which have not answered yet."""

    def __init__(self, asked: list[Target], addresses: Mapping[str, str], waiting: Waiting) -> None:
        self._addresses = addresses
        self._waiting = waiting
        self._lock = Lock()
        self._left = {one.bookie for one in asked}
        self._say()

    def of(self, bookie: str) -> str:
        address = self._addresses.get(bookie, bookie)
        return bookie if address == bookie else f"{bookie} at {address}"

    def done(self, bookie: str) -> None:
        with self._lock:
            self._left.discard(bookie)
            self._say()

    def _say(self) -> None:
        self._waiting(", ".join(map(self.of, sorted(self._left)[:_MOST_NAMED])))
