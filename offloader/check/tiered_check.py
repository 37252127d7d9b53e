"""A place of ``[[tiered]]``: it answers, to these credentials, and has what Pulsar has put there.

Of ledgers of some topics that Pulsar says it has offloaded an entry is read. Where the place has
none of them in its own format, the other one is tried: then ``format`` is what is wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs

from offloader.check.outcome import Finding, Waiting
from offloader.check.topic_check import FoundTopics, spread
from reader import errors
from reader.config import TieredConfig
from reader.model import OffloadContext, Partition
from reader.pulsar import AdminClient
from reader.storage import Storage, open_storage
from reader.tiered import TieredLedgers, format_of

_MOST_TOPICS = 5
_MOST_PARTITIONS = 8
_MOST_LEDGERS = 4  # of a partition: the oldest and the newest ones
_FIX = (
    "check uri (is the bucket there?), options (endpoint_url, region, keys) and the right to read"
)


@dataclass(frozen=True, slots=True)
class _Offloaded:
    """A ledger that Pulsar has offloaded, and has entries."""

    partition: Partition
    ledger_id: int
    context: OffloadContext

    def __str__(self) -> str:
        return f"ledger {self.ledger_id} of {self.partition}"


OffloadedLedgers = Sequence[_Offloaded]


def offloaded_ledgers(admin: AdminClient, found: FoundTopics, waiting: Waiting) -> OffloadedLedgers:
    """Of some topics, of as many namespaces as possible. Raises UnavailableError."""
    waiting(admin.http.url)
    ledgers: list[_Offloaded] = []
    for topic in spread(list(found.topics), _MOST_TOPICS):
        partitions = found.topics[topic] or (found.first_partition(topic),)
        for partition in partitions[:_MOST_PARTITIONS]:
            try:
                listing = admin.ledgers(partition, transactions=False)
            except (errors.ConfigurationError, errors.NotFoundError):
                continue  # that is the role's, and the topics', to say
            some = [
                _Offloaded(partition, one.ledger_id, one.offload)
                for one in listing.ledgers
                if one.offload is not None and listing.last_entry(one) >= 0
            ]
            half = _MOST_LEDGERS // 2
            ledgers += some if len(some) <= _MOST_LEDGERS else some[:half] + some[-half:]
    return ledgers


def check_place(
    place: TieredConfig, others: Sequence[TieredConfig], ledgers: OffloadedLedgers, waiting: Waiting
) -> Finding:
    """``others``: places that may have what this one does not. Raises UnavailableError, and
    ConfigurationError for a place that cannot be used."""
    storage = open_storage(place.storage)
    waiting(storage.place)
    if not _is_there(storage, format_of(place)):
        return Finding.failed(f"{storage.place}: there is no such bucket or directory", _FIX)
    ours = [
        one
        for one in ledgers
        if place.has(one.partition.topic.tenant, one.partition.topic.namespace)
    ]
    if not ours:
        return Finding.ok(
            f"{storage.place}: answers; no ledger of the topics asked for is offloaded"
        )
    for one in ours:
        try:
            if _has([place], one):
                return Finding.ok(f"{storage.place}: gives an entry of {one}")
        except (errors.CorruptError, errors.UnsupportedError) as error:
            return Finding.warning(f"{storage.place}: {error.message}", error.hint or "")
    other = "filesystem" if format_of(place) == "jcloud" else "jcloud"
    wrong = place.model_copy(update={"format": other})
    for one in ours:
        if _has([wrong], one):
            return Finding.failed(
                f"{storage.place}: {one} lies there as the {other} driver writes it",
                f'set format = "{other}" in its section',
            )
    elsewhere = [one for one in others if one is not place]
    nowhere = [one for one in ours if not elsewhere or not _has(elsewhere, one)]
    if not nowhere:
        return Finding.ok(f"{storage.place}: answers; what was asked for lies in other places")
    return Finding.warning(
        f"{storage.place}: answers, and {nowhere[0]}, which Pulsar has offloaded, is not there",
        "see whether Pulsar's offload policy, today's or that of the time, names another bucket or "
        "directory: add a section for it",
    )


def _is_there(storage: Storage, form: str) -> bool:
    """Raises UnavailableError where it does not answer, or refuses."""
    try:
        filesystem, root = storage.filesystem()
        # Asked with a name that nothing has: all of a bucket's objects may lie at its root.
        filesystem.get_file_info(f"{root}/~check/none")
        if form == "jcloud" and isinstance(filesystem, pafs.PyFileSystem):
            return True
        found = filesystem.get_file_info(root).type
    except (OSError, pa.ArrowException) as error:
        raise errors.UnavailableError(
            f"cannot read {storage.place}: {errors.plain_text(error)}", hint=_FIX
        ) from error
    return bool(found == pafs.FileType.Directory)


def _has(places: Sequence[TieredConfig], one: _Offloaded) -> bool:
    """Whether an entry of the ledger can be read in one of the places."""
    ledgers = TieredLedgers(places)
    try:
        return any(ledgers.read(one.partition, one.ledger_id, one.context, 0, 0))
    except errors.NotFoundError:
        return False
