"""What a stream has not read and never will: told by what Pulsar, and its table, still say.

Ledger ids are cluster-wide, so a missing number says nothing. What does:

1. *The ledger in which a stream goes on*, and the one in which a batch ends. Pulsar deletes in
   order: where it lists the former, all that follows is there. Where it does not, the table has to
   have it: at or below the watermark, at or above the first ledger that was offloaded
   (``TopicTable.first``), and named by a file or by a commit. Where the log has forgotten the
   commits, the ledger counts as offloaded.
2. *Of a partition in which it has read nothing* since it was created, how many entries had been
   deleted: more than where it began. A broker counts them since it loaded the topic; where the
   table has the partition, the number of when its first ledger was offloaded.
3. *The last position of which a row has expired*. What expired since the stream's offset may lie
   behind that; before it, it was read. Rows of chunked messages that were given up come later, at
   places before the offset. Of these, *where the last message begins of which a row has expired*:
   the stream has read the rows of messages that begin up to its ``given_up``.
4. *Of a partition that was made again*, that what followed in the one that it was may be lost.
5. *Losses that the table knows of* (``reader.plan.data_loss``): up to where there was one in a
   partition, it never forgets.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping

from reader import plan
from reader.model import BEFORE_ALL, Partition, Position
from reader.pulsar import PartitionLedgers
from reader.stream.offsets import PartitionOffset
from reader.table import TopicTable, records_upto

_REMEMBERED = 1_024


class LossReader:
    """For one topic, one thread at a time. ``lost_ledgers``: declared lost by operators."""

    def __init__(self, lost_ledgers: Collection[int]) -> None:
        self._lost_ledgers = lost_ledgers
        self._watermarks: dict[Partition, int] = {}

    def of(
        self,
        start: Mapping[Partition, PartitionOffset],
        end: Mapping[Partition, PartitionOffset],
        listed: Mapping[Partition, PartitionLedgers],
        table: TopicTable | None,
    ) -> list[str]:
        """Return what is lost between two offsets, a line for each loss.

        ``listed`` is not younger than ``table``. Raises as the log's commits are read.
        """
        found: list[str] = []
        for partition, to in end.items():
            since, listing = start[partition], listed[partition]
            found += self._deleted(listing, table, since, to)
            if table is not None:
                found += _expired(table, partition, since)
        return [*found, *self._known(start, end, listed, table)]

    def _deleted(
        self,
        listing: PartitionLedgers,
        table: TopicTable | None,
        since: PartitionOffset,
        to: PartitionOffset,
    ) -> Iterator[str]:
        if is_made_again(since, listing):
            yield (
                f"{listing.partition} was deleted and made again: its managed ledger was created "
                f"at {listing.created_at}, and the stream has read up to {since.at} of one of "
                f"{since.created_at}; what followed there may be lost"
            )
            return
        # Where an offset lies in an earlier life, nothing of this one has been read.
        earlier = plan.last_of_earlier_lives(table, listing)
        if since.at.ledger <= earlier:
            if missing(listing, table) > since.missing:
                yield f"{listing.partition}: its first messages were deleted before they were read"
                return
        elif not self._is_there(listing, table, since.at.ledger):
            yield (
                f"{listing.partition}: ledger {since.at.ledger}, which was read up to entry "
                f"{since.at.entry}, has been deleted, and what followed may be, too"
            )
            return
        if to.at.ledger > earlier and not self._is_there(listing, table, to.at.ledger):
            yield (
                f"{listing.partition}: ledger {to.at.ledger}, of which entries up to {to.at.entry} "
                "were to be read, has been deleted"
            )

    def _is_there(self, listing: PartitionLedgers, table: TopicTable | None, ledger: int) -> bool:
        """Whether Pulsar lists a ledger of a partition, or its table has it."""
        ids = [one.ledger_id for one in listing.ledgers]
        place = bisect_left(ids, ledger)
        if place < len(ids) and ids[place] == ledger:
            return True
        partition = listing.partition
        if table is None or ledger > table.watermark(partition):
            return False
        first = plan.first_of_life(table, listing)
        if first is not None and ledger < first:
            return False
        # What was there, and was read from the table since, has all up to the watermark of then.
        if ledger > self._watermarks.get(partition, -1):
            if not _has(table, partition, ledger):
                return False
            self._watermarks[partition] = table.watermark(partition)
        return True

    def _known(
        self,
        start: Mapping[Partition, PartitionOffset],
        end: Mapping[Partition, PartitionOffset],
        listed: Mapping[Partition, PartitionLedgers],
        table: TopicTable | None,
    ) -> Iterator[str]:
        losses = plan.declared_losses(table, listed, self._lost_ledgers)
        if table is not None:
            for partition in end:
                yield from _forgotten(table, partition, start[partition].at)
            losses += [*plan.recorded_losses(table), *plan.new_losses(table, listed)]
        for loss in losses:
            to_read = end.get(loss.partition)
            if to_read is None or loss.before > to_read.at.ledger:
                continue
            begin = start[loss.partition].at
            # A ledger that is there, and was declared lost, may be the one to begin with.
            there = loss.before == loss.ledger
            if begin < Position(loss.before, 0) if there else begin.ledger < loss.before:
                yield str(loss)


def warn_once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Return ``warn`` for new texts only: a micro-batch is planned more than once, and a text names
    the loss. The last 1,024 texts are remembered."""
    warned: dict[str, None] = {}

    def warn_if_new(text: str) -> None:
        if text not in warned:
            warn(text)
            warned[text] = None
            if len(warned) > _REMEMBERED:
                del warned[next(iter(warned))]

    return warn_if_new


def is_made_again(since: PartitionOffset, listing: PartitionLedgers) -> bool:
    """Whether a partition was deleted since, and made again: by somebody, or by its broker, as
    idle partitions without a subscription are by default."""
    return bool(since.created_at) and listing.created_at not in ("", since.created_at)


def missing(listing: PartitionLedgers, table: TopicTable | None) -> int:
    """Return how many entries of a partition, at least, are neither in Pulsar nor in the table,
    before all that is."""
    if table is not None and plan.first_of_life(table, listing) is not None:
        return table.numbers(listing.partition).missing
    return listing.missing


def expired(table: TopicTable | None, partition: Partition) -> tuple[Position, int]:
    """Return ``PartitionOffset.expired`` of now: any row that expires later changes it."""
    if table is None or (upto := table.numbers(partition).expired_upto) == BEFORE_ALL:
        return BEFORE_ALL, 0
    return upto, table.numbers(partition).expired_before


def _has(table: TopicTable, partition: Partition, ledger: int) -> bool:
    """Whether the table has, or had, a ledger between its first one and its watermark.

    True where the log has forgotten.
    """
    for file in plan.table_files(table):
        if file.limit("__partition") == (partition.index,) * 2 and ledger in file.limit(
            "__ledgerId"
        ):
            return True
    record = records_upto(table.commits(), {partition.index: ledger}).get(partition.index)
    return record is None or (record.ledger == ledger and not record.lost)


def _expired(table: TopicTable, partition: Partition, since: PartitionOffset) -> Iterator[str]:
    found = expired(table, partition)
    if since.at < found[0] and since.expired != found:
        yield (
            f"{partition}: rows up to {found[0]} have expired, and only those up to {since.at} "
            "were read"
        )
    late = table.numbers(partition).expired_given_up
    if since.given_up < min(since.at, late):
        yield (
            f"{partition}: rows of chunked messages that were given up have expired, of messages "
            f"that begin up to {late}, and only those up to {since.given_up} were read"
        )


def _forgotten(table: TopicTable, partition: Partition, since: Position) -> Iterator[str]:
    """The last loss of a partition, where the log has forgotten some that lie behind ``since``."""
    upto = table.numbers(partition).data_loss
    if upto is None or since.ledger >= upto:
        return
    logged = [one.ledger for one in table.ledgers() if one.partition == partition.index]
    # A loss of which nobody knows the first ledger has -1.
    begin = max(since.ledger, table.numbers(partition).first or 0)
    if min((one for one in logged if one >= 0), default=upto) > begin:
        yield (
            f"{partition}: messages were lost before they were offloaded, long ago, in ledgers up "
            f"to {upto}, and only those up to {since} were read"
        )
