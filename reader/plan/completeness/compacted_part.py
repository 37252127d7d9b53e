"""What a compacted view needs of Pulsar's compacted ledgers, and whether they have it.

The latest message of a key may be older than all that the table and Pulsar have: Pulsar deletes
what it has compacted, and rows expire. Pulsar's compacted ledger has it then, if

1. compaction has seen the message. Its first run began with the first ledger that Pulsar had then,
   and Pulsar deletes nothing that the compaction has not passed. Nothing in Pulsar tells afterwards
   where it began, so each turn of the offloader records that (``compaction_start``);
2. no later message of the key, which the snapshot does not have, has taken its place. So a
   compacted ledger serves a snapshot if it ends where the snapshot does, or before
   (``CompactedPart.serves``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Position, Topic
from reader.plan.data_loss import new_losses
from reader.plan.history import first_of_life
from reader.pulsar import CompactedLedger, PartitionLedgers
from reader.table import TopicTable


@dataclass(frozen=True, slots=True)
class CompactedPart:
    """The part of a partition that a compacted view reads from Pulsar's compacted ledger.

    ``before``: all ledgers below are read there. ``first``: the table has rows of ledgers from
    ``first`` to ``before``, which are left out, as some of them have expired or were lost. (Those
    below ``first`` are of a managed ledger that was deleted.) ``ledger``: the compacted ledger of
    the snapshot. ``end``: where the snapshot ends.
    """

    partition: Partition
    first: int
    before: int
    ledger: CompactedLedger
    end: Position

    def serves(self, ledger: CompactedLedger) -> bool:
        """Return whether a compacted ledger has the latest message of each key of the snapshot."""
        return ledger.ledger_id == self.ledger.ledger_id or ledger.upto <= self.end


def compaction_start(table: TopicTable | None, listing: PartitionLedgers) -> int | None:
    """Return a ledger from which on Pulsar's compaction sees all messages of a partition.

    Return None if Pulsar does not compact the partition. What ``table`` has recorded is the answer
    as long as Pulsar's cursor is there. A cursor that is new to the table has seen, or will see,
    all that is listed.
    """
    if not listing.has_compaction:
        return None
    if table is not None and table.is_filled_from(listing.partition, listing.created_at):
        recorded = table.numbers(listing.partition).compaction_start
        if recorded is not None:
            return recorded
    return listing.ledgers[0].ledger_id if listing.ledgers else listing.last_confirmed.ledger + 1


def compacted_parts(
    table: TopicTable | None,
    listed: Mapping[Partition, PartitionLedgers],
    *,
    reads_table: bool = True,
    allow_missing: bool = False,
) -> tuple[CompactedPart, ...]:
    """Return the parts of which only Pulsar's compacted ledgers have the latest messages.

    A partition that was compacted has one, even if nothing may be missing: what its ledger has
    below the first ledger that is readable decides that, and reading it ends there.
    Nothing is ``listed`` of a topic that was deleted, and where only the table is read.
    ``reads_table``: whether the query reads the table's rows at all.
    Raises ConfigurationError, unless ``allow_missing``, if rows of ``table`` have expired that
    Pulsar's compaction has not seen; UnavailableError if Pulsar does not show a compacted ledger.
    """
    if (
        table is not None
        and table.topic_numbers.expired_before is not None
        and not listed
        and not allow_missing
    ):
        raise _expired(table.topic, "Pulsar's compacted ledger is not read")
    found = []
    for partition, listing in listed.items():
        reason = None if table is None else _unseen(table, listing)
        if reason is not None and not allow_missing:
            raise _expired(partition, reason)
        if listing.compacted is not None:
            found.append(_part(table if reads_table else None, listing, listing.compacted))
    return tuple(found)


def _part(
    table: TopicTable | None, listing: PartitionLedgers, ledger: CompactedLedger
) -> CompactedPart:
    if ledger.metadata is None:
        raise UnavailableError(
            f"Pulsar does not show compacted ledger {ledger.ledger_id} of {listing.partition}: its "
            "broker could not open it, or is about to replace it",
            hint="try again; if it stays so, check the bookies and unload the topic",
        )
    first = first_of_life(table, listing) if table else None
    if table is None or first is None:
        watermark = table.watermark(listing.partition) if table else -1
        above = (one.ledger_id for one in listing.ledgers if one.ledger_id > watermark)
        first = next(above, ledger.upto.ledger + 1)
        before = first
    else:
        expired = table.numbers(listing.partition).expired_upto.ledger
        before = max(first, expired + 1, _lost_before(table, listing))
    # The cursor of an idle partition may be ahead of its last entry: in the open ledger.
    end = max(listing.max_read, ledger.upto)
    return CompactedPart(listing.partition, first, before, ledger, end)


def _lost_before(table: TopicTable, listing: PartitionLedgers) -> int:
    """Return the ledger that follows the last loss, -1 if compaction may not have seen it all.

    Messages that were deleted before they were offloaded, and maybe the last ones of their keys,
    are in the compacted ledger, as Pulsar deletes nothing that it has not compacted.
    """
    first, start = first_of_life(table, listing), compaction_start(table, listing)
    if first is None or start is None or start > first:
        return -1
    losses = new_losses(table, {listing.partition: listing})
    recorded = table.numbers(listing.partition).data_loss
    return max([one.before for one in losses], default=-1 if recorded is None else recorded)


def _unseen(table: TopicTable, listing: PartitionLedgers) -> str | None:
    """Return why rows may have expired that compaction has not seen, or None if none have."""
    lowest = table.numbers(listing.partition).expired_from
    if lowest is None:
        return None
    if listing.compacted is None:
        return "Pulsar has no compacted ledger of it"
    start = compaction_start(table, listing)
    if start is None or start > lowest:
        return (
            f"among them some of ledger {lowest}, but it is certain only from ledger {start} on "
            "that Pulsar's compaction has seen all messages"
        )
    upto, last = listing.compacted.upto, table.numbers(listing.partition).expired_upto.ledger
    for one in listing.ledgers:
        entry = listing.last_entry(one)
        if one.ledger_id <= last and entry >= 0 and Position(one.ledger_id, entry) > upto:
            return f"Pulsar has compacted it up to {upto} only"
    return None


def _expired(what: Topic | Partition, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the compacted view of {what} would lack keys: rows have expired (offload.retention), "
        f"and {why}",
        hint="compact the topic in Pulsar from its beginning (compaction threshold), query the "
        "topic itself, or set query.allow_data_loss = true to read what there is",
    )
