"""Whether what Pulsar lists and what the table holds belong together: one topic, one history.

A cluster that is restored from a backup gives ledger ids again, to other messages, and its managed
ledgers keep their creation times. Taken for what is in the table, they would be in no query, and
be let go by the hold. What tells them apart:

1. The greatest close time of the ledgers up to the watermark is in the log, for good. A listed
   ledger at or below it that was closed later is another one. (Not the watermark's own: brokers'
   clocks differ.)
2. A partition goes on behind what was offloaded: the ledger that is open is above the watermark.
   (There may be none: Pulsar drops an empty one that cannot be written to from the list, and while
   bookies are missing it can make no other.)
3. The last listed ledger at or below the watermark is as a commit recorded it. Those before it
   are, then, too: ids grow along a partition, so ids that were given again come last.

Every query checks 1 and 2, by what it has read anyway and one more number of the log; turns and
``status`` check 3, which reads the newest commits. The last ledger of a list has no close time
that counts: a terminated topic's gets a new one whenever it is loaded. A topic that was deleted and
made again has another creation time, and only ledgers above the watermark.
"""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Protocol

from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, Tier
from reader.plan.cold_files import ColdFile, table_files
from reader.pulsar import LedgerInfo, PartitionLedgers
from reader.table import LoggedCommit, OffloadedLedger, TopicTable, records_upto


class LedgerLists(Protocol):
    """What is asked of Pulsar (``AdminClient``)."""

    def ledgers(self, partition: Partition) -> PartitionLedgers: ...


def first_of_life(table: TopicTable, listing: PartitionLedgers) -> int | None:
    """Return the first ledger that the table has of the managed ledger that is listed.

    Return None if the table has no ledger of it: the partition was made again since, or is new.
    """
    return (
        table.numbers(listing.partition).first
        if table.is_filled_from(listing.partition, listing.created_at)
        else None
    )


def last_of_earlier_lives(table: TopicTable | None, listing: PartitionLedgers) -> int:
    """Return the last ledger that the table has of managed ledgers before the one that is listed.

    Return -1 if the table has no ledger of such a one.
    """
    if table is None:
        return -1
    if table.is_filled_from(listing.partition, listing.created_at):
        return table.numbers(listing.partition).earlier
    return table.watermark(listing.partition)


def last_closed(
    table: TopicTable | None, listing: PartitionLedgers, upto: int
) -> tuple[int, int] | None:
    """The greatest close time (ms since the epoch) of the partition's ledgers, and the last ledger
    that it covers: up to ``upto``, or to where a listed ledger has no time yet. None: not known.

    Of ledgers that are listed, and of those that ``table`` knows of.
    """
    known = []
    if table and (at := table.numbers(listing.partition).closed_at) is not None:
        known.append((at, table.numbers(listing.partition).closed_ledger))
    for one in _below(listing, upto):
        if (at := listing.closed_at(one)) is None:
            break  # told later, it may be greater than all that is known
        known.append((at, one.ledger_id))
    return (max(at for at, _ in known), max(one for _, one in known)) if known else None


def check_same_topic(
    admin: LedgerLists, table: TopicTable, listed: Mapping[Partition, PartitionLedgers]
) -> None:
    """Refuse a table that was filled from another cluster's ledgers, or before a restore.

    ``listed`` is older than ``table``: what is wrong is wrong by a newer list, too. Raises
    ConfigurationError.
    """
    for partition, listing in listed.items():
        if _contradiction(table, listing) is None:
            continue
        found = _contradiction(table, admin.ledgers(partition))
        if found is not None:
            raise _another_history(table, partition, found)


def _another_history(table: TopicTable, partition: Partition, found: str) -> ConfigurationError:
    return ConfigurationError(
        f"the table of {partition} was filled from another cluster or before a restore: {found}",
        hint=f"point storage.uri elsewhere, or move the table at {table.uri} away",
    )


def _contradiction(table: TopicTable, listing: PartitionLedgers) -> str | None:
    """What cannot be in one history (1 and 2 above); None: nothing."""
    partition, numbers = listing.partition, table.numbers(listing.partition)
    watermark = numbers.watermark
    below = _below(listing, watermark)
    if not below:
        return None
    created_at = table.created_at(partition)
    if created_at and listing.created_at and created_at != listing.created_at:
        return (
            f"ledger {below[0].ledger_id} lies below its watermark {watermark}, but the managed "
            f"ledger was created at {listing.created_at}, not {created_at}"
        )
    if len(below) == len(listing.ledgers) and not listing.terminated and not below[-1].closed:
        return f"it ends with ledger {below[-1].ledger_id}, but its watermark is {watermark}"
    times = {one.ledger_id: at for one in below if (at := listing.closed_at(one)) is not None}
    closed_at = numbers.closed_at if times else None
    for ledger, at in times.items():
        # An older version of this program leaves the number behind the watermark.
        if closed_at is not None and at > closed_at and ledger <= numbers.closed_ledger:
            return (
                f"ledger {ledger} lies below its watermark {watermark}, but was closed at {at} "
                f"(ms), after all that was offloaded ({closed_at})"
            )
    return None


class HistoryChecks:
    """``check_same_topic``, and what commits recorded of the last ledgers (3 above).

    Remembers what it has compared, so that commits are read for new ledgers only; each partition
    for one thread at a time.
    """

    def __init__(self) -> None:
        self._compared: dict[Partition, tuple[str, int, int, int | None]] = {}

    def check(
        self,
        admin: LedgerLists,
        table: TopicTable,
        listed: Mapping[Partition, PartitionLedgers],
        commits: Iterable[LoggedCommit] | None = None,
    ) -> None:
        """``listed`` is older than ``table``. Raises ConfigurationError for another history.

        ``commits``: the table's, newest first, where they were read already.
        """
        check_same_topic(admin, table, listed)
        lasts: dict[Partition, LedgerInfo] = {}
        for partition, listing in listed.items():
            filled = [
                one
                for one in _below(listing, table.watermark(partition))
                if listing.last_entry(one) >= 0
            ]
            if filled and self._compared.get(partition) != _shown(table, listing, filled[-1]):
                lasts[partition] = filled[-1]
        wanted = {partition.index: last.ledger_id for partition, last in lasts.items()}
        records = records_upto(table.commits() if commits is None else commits, wanted)
        for partition, last in lasts.items():
            record = records.get(partition.index)
            found = _difference(listed[partition], last, record) if record else None
            if found is not None:
                raise _another_history(table, partition, found)
            self._compared[partition] = _shown(table, listed[partition], last)


def _shown(
    table: TopicTable, listing: PartitionLedgers, ledger: LedgerInfo
) -> tuple[str, int, int, int | None]:
    last_entry, closed_at = listing.last_entry(ledger), listing.closed_at(ledger)
    return table.id, ledger.ledger_id, last_entry, closed_at


def _difference(
    listing: PartitionLedgers, ledger: LedgerInfo, record: OffloadedLedger
) -> str | None:
    """How a listed ledger is not as recorded, at or before it; None: it is."""
    what = f"ledger {ledger.ledger_id} lies below its watermark, but"
    if record.ledger != ledger.ledger_id:
        return f"{what} no commit has added it"
    if record.lost:
        return f"{what} the log names it as lost"
    # Only BookKeeper's metadata says the same from list to list.
    exact = ledger.metadata is not None and ledger.metadata.closed
    entries = listing.last_entry(ledger) + 1
    if exact and record.tier == Tier.BOOKKEEPER and entries != record.entries:
        return f"{what} has {entries} entries, and not the {record.entries} that were offloaded"
    closed_at = listing.closed_at(ledger)
    if None not in (closed_at, record.closed_at) and closed_at != record.closed_at:
        return f"{what} was closed at {closed_at} (ms), and not at {record.closed_at}"
    return None


def _below(listing: PartitionLedgers, watermark: int) -> list[LedgerInfo]:
    return [one for one in listing.ledgers if one.ledger_id <= watermark]


def refuse_trimmed(
    table: TopicTable, listed: Mapping[Partition, PartitionLedgers], tier: Tier
) -> None:
    """Raise NotFoundError where the table has rows that Pulsar cannot give any more.

    By the version's files, which are in its checkpoints: of old ledgers no commit tells. What has
    expired is in none of them.
    """
    firsts = {
        partition.index: listing.ledgers[0].ledger_id if listing.ledgers else inf
        for partition, listing in listed.items()
    }
    for file in table_files(table):
        if file.rows != 0 and _begins_before(file, firsts):
            ledger = file.limit("__ledgerId")[0]
            what = f"Pulsar has trimmed ledger {ledger}, of which the table has rows"
            if ledger is None:
                what = "the table has a file without statistics, of ledgers that nobody knows"
            raise NotFoundError(
                f"tier '{tier}' cannot serve all of {table.topic}: {what}",
                hint="leave tiers unset: the table has them",
            )


def _begins_before(file: ColdFile, firsts: Mapping[int, float]) -> bool:
    """Whether the file may have rows of ledgers before its partition's first (by index)."""
    low, high = file.limit("__partition")
    ledger = file.limit("__ledgerId")[0]
    if low is None or high is None:
        first = max(firsts.values(), default=inf)
    else:
        first = max(firsts.get(index, inf) for index in range(low, high + 1))
    return ledger is None or ledger < first
