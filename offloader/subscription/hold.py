"""The hold: a durable subscription that keeps Pulsar from trimming what is not in the table yet.

Taken at the earliest message before anything else is done with a partition. Released only up to
the first entry of the first ledger above a watermark that the log, read afresh, has had for
``grace``: queries that began before the commit still read those ledgers. Less far where a chunked
message begins below the watermark and is not complete yet.

Before it is moved, the hold is told the place of the table that it is moved for, and how far that
one is: another table's offloader leaves it alone, and a table that is gone is missed (``claim``,
``require_unclaimed``), by queries as well (``reader.plan.completeness``).

Moved backwards only where something else has moved it ahead of what is in the log (a TTL, a reset
by hand): what Pulsar still has is held again.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from offloader.model import Release
from reader import pulsar
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.model import Partition, Position, Topic
from reader.storage import Storage
from reader.table import PartitionNumbers, TopicTable
from reader.table.log import read_commit

_PARALLEL_REQUESTS = 8
_CLAIMS = 10  # how often a hold is noted down that other clients are changing


class TableProgress(Protocol):
    """What a table says of its partitions (``TopicTable``)."""

    def numbers(self, partition: Partition) -> PartitionNumbers: ...


def take(
    admin: pulsar.SubscriptionRequests, partitions: Sequence[Partition], name: str
) -> dict[Partition, bool | PulsarLakeError]:
    """Make the hold on each partition, side by side: one that does not answer holds up no other.

    Return whether each was made, or the error of one that is not held.
    """

    def made(partition: Partition) -> bool | PulsarLakeError:
        try:
            return admin.create_hold(partition, name)
        except PulsarLakeError as error:
            return error

    with ThreadPoolExecutor(min(_PARALLEL_REQUESTS, max(1, len(partitions)))) as pool:
        return dict(zip(partitions, pool.map(made, partitions), strict=True))


def require_all(taken: Mapping[Partition, bool | PulsarLakeError]) -> None:
    """Raise the first error of holds that ``take`` has tried to make."""
    for made in taken.values():
        if isinstance(made, PulsarLakeError):
            raise made


def missing(listed: Mapping[Partition, pulsar.PartitionLedgers], name: str) -> list[Partition]:
    """Partitions whose hold was deleted by a client, or expired by Pulsar."""
    return [one for one, listing in listed.items() if name not in listing.cursors]


def next_needed(
    listing: pulsar.PartitionLedgers, watermark: int, lookback: Position | None = None
) -> Position | None:
    """The first entry of the first listed ledger above ``watermark``.

    Before it, where a message begins at ``lookback`` that is still incomplete, as far as that is
    still there: a topic may have been made again. Of a terminated topic that is wholly in the
    table: behind its last entry. None where the partition has no ledger at all.
    """
    if lookback is not None and listing.ledgers:
        return max(lookback, Position(listing.ledgers[0].ledger_id, 0))
    for ledger in listing.ledgers:
        if ledger.ledger_id > watermark:
            return Position(ledger.ledger_id, 0)
    if not listing.ledgers:
        return None
    last = listing.ledgers[-1]
    return Position(last.ledger_id, listing.last_entry(last) + 1)


def settled(
    storage: Storage,
    newest: TopicTable,
    topic: Topic,
    *,
    clock_ms: int,
    grace_ms: int,
    known_ms: Callable[[int], int] = lambda version: 0,
) -> tuple[TopicTable | None, float]:
    """The youngest table version that is at least ``grace`` old, and the seconds until the next.

    ``newest`` was just read from the log. 0.0 where nothing younger is waiting. ``known_ms``: for
    how long this process has known a version: a clock that is set back makes no commit younger.
    """
    wait_ms = 0
    for version in range(newest.version, -1, -1):
        commit = read_commit(storage, topic, version)
        # A commit that clean-up has removed from the log is days old.
        age_ms = grace_ms
        if commit is not None:
            age_ms = max(clock_ms - commit.at_ms, known_ms(version))
        if age_ms >= grace_ms:
            same = version == newest.version
            table = newest if same else TopicTable.open(storage, topic, version)
            return table, wait_ms / 1000
        wait_ms = grace_ms - age_ms  # at most the grace
    return None, wait_ms / 1000


def moves(
    listed: Mapping[Partition, pulsar.PartitionLedgers], table: TableProgress, name: str
) -> list[Release]:
    """What ``release`` would move, given what ``table`` has."""
    found = []
    for partition, listing in listed.items():
        held = listing.cursors.get(name)
        numbers = table.numbers(partition)
        watermark = numbers.watermark
        target = next_needed(listing, watermark, numbers.lookback) if watermark >= 0 else None
        if held is not None and target is not None and _normal(listing, held) < target:
            found.append(Release(partition, held, target))
    return found


def strayed(
    listed: Mapping[Partition, pulsar.PartitionLedgers], table: TableProgress | None, name: str
) -> list[Release]:
    """Holds that are ahead of what ``table`` has, and where each belongs: not moved by us.

    ``listed`` is not younger than ``table``: another offloader moves them after its commit only.
    """
    found = []
    for partition, listing in listed.items():
        held = listing.cursors.get(name)
        watermark, lookback = -1, None
        if table is not None:
            numbers = table.numbers(partition)
            watermark, lookback = numbers.watermark, numbers.lookback
        needed = next_needed(listing, watermark, lookback)
        if held is not None and needed is not None and _normal(listing, held) > needed:
            found.append(Release(partition, held, needed))
    return found


def release(
    admin: pulsar.SubscriptionRequests,
    listed: Mapping[Partition, pulsar.PartitionLedgers],
    table: TableProgress,
    name: str,
) -> list[Release]:
    """Move each partition's hold up to what ``table`` has; the moves that were made.

    ``listed`` has to be new: a hold is never set behind where it is. One that another offloader
    is moving at this moment is left to it, until the next turn.
    """
    return [
        one for one in moves(listed, table, name) if admin.move_hold(one.partition, name, one.after)
    ]


def claim(
    admin: pulsar.SubscriptionRequests,
    partition: Partition,
    name: str,
    table: TopicTable,
    watermark: int,
    *,
    recorded: bool = False,
) -> None:
    """Note down that the hold is moved for ``table``, which has the ledgers up to ``watermark``.

    ``recorded``: it was an old copy, and what an operator has given up of it is in its log. Raises
    ConfigurationError where it is moved for another table: that one would lose messages.
    UnavailableError where other clients have changed the subscription again and again.
    """
    for _ in range(_CLAIMS):
        if _try_claim(admin, partition, name, table, watermark, recorded):
            return
    raise UnavailableError(
        f"subscription {name} of {partition} is being changed by others again and again",
        hint="look for other offloaders of the topic",
    )


def _try_claim(
    admin: pulsar.SubscriptionRequests,
    partition: Partition,
    name: str,
    table: TopicTable,
    watermark: int,
    recorded: bool,
) -> bool:
    """``claim``, once; False where another client has changed the subscription meanwhile."""
    found = admin.hold_properties(partition, name)
    held = pulsar.HeldTable.of(found, partition) or pulsar.HeldTable("", "", -1)
    mine = {
        pulsar.TABLE_KEY: table.uri,
        pulsar.TABLE_ID_KEY: table.id,
        pulsar.WATERMARK_KEY: str(watermark),
        pulsar.PARTITION_KEY: str(partition),
    }
    if held.uri in ("", table.uri) and held.id in ("", table.id):
        done = recorded or held.lost_upto <= watermark  # else a commit has yet to record it
        drops = pulsar.LOST_KEY in found and held.watermark <= watermark and done
        if held.id and held.watermark >= watermark and not drops:
            return True
        if drops:
            del found[pulsar.LOST_KEY]
        if not admin.note_hold(partition, name, {**found, **mine}):
            return False
        if held.id:
            return True
        # Another offloader may have been faster.
        held = pulsar.HeldTable.of(admin.hold_properties(partition, name), partition) or held
    if held.uri != table.uri:
        raise _owned(partition, name, held.uri, table.uri)
    if held.id != table.id:
        raise ConfigurationError(
            f"subscription {name} of {partition} is moved for another table of the same name "
            f"{table.uri}: its id is {held.id}, not {table.id}",
            hint="another storage may have the same URI: set another offload.subscription",
        )
    return True


def require_own(
    admin: pulsar.SubscriptionRequests, partition: Partition, name: str, uri: str
) -> None:
    """Raise ConfigurationError if the hold was moved for a table at another place."""
    _require_own(admin.hold_properties(partition, name), partition, name, uri)


def require_unclaimed(
    admin: pulsar.SubscriptionRequests, partition: Partition, name: str, uri: str
) -> None:
    """Raise ConfigurationError if the hold was moved for a table already, though there is none.

    What Pulsar has deleted since then is in that table alone: a new one would begin without it.
    """
    found = admin.hold_properties(partition, name)
    _require_own(found, partition, name, uri)
    if pulsar.TABLE_KEY in found:
        raise ConfigurationError(
            f"there is no table at {uri}, but subscription {name} of {partition} was moved for it",
            hint="bring it back, from the bucket's versions for instance; docs/operations.md says "
            "how to begin a new one with what Pulsar still has",
        )


def _require_own(found: Mapping[str, str], partition: Partition, name: str, uri: str) -> None:
    owner = found.get(pulsar.TABLE_KEY, uri)
    if owner != uri:
        raise _owned(partition, name, owner, uri)


def _owned(partition: Partition, name: str, owner: str, uri: str) -> ConfigurationError:
    return ConfigurationError(
        f"subscription {name} of {partition} is moved for the table at {owner}, not for {uri}",
        hint="for a second table set another offload.subscription; if the table was moved, set "
        f"the subscription's property {pulsar.TABLE_KEY}",
    )


def _normal(listing: pulsar.PartitionLedgers, held: Position) -> Position:
    """A position behind its ledger's last entry as the beginning of the next ledger there is.

    Pulsar keeps the old form, also when it has deleted that ledger. Where there is none, behind the
    last entry of the last ledger: the open one is not listed any more if its first write failed.
    """
    for ledger in listing.ledgers:
        if ledger.ledger_id == held.ledger and held.entry <= listing.last_entry(ledger):
            return held
    return next_needed(listing, held.ledger) or held


def verify(
    admin: pulsar.AdminClient, listed: Mapping[Partition, pulsar.PartitionLedgers], name: str
) -> Mapping[Partition, pulsar.PartitionLedgers]:
    """``listed``, anew where a hold was missing and has been made again.

    Raises UnavailableError when Pulsar does not show a hold that it was asked to make.
    """
    gone = missing(listed, name)
    require_all(take(admin, gone, name))
    again = {one: admin.ledgers(one) for one in gone}
    if still := missing(again, name):
        raise UnavailableError(f"Pulsar shows no subscription {name} on {still[0]}")
    return {**listed, **again}
