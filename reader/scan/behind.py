"""The rows of a partition behind a position, for a caller that needs no rows before it.

What a query over the whole topic refuses is of no concern here if it lies before the position: a
loss long ago, or a table at ``storage.uri`` that is another offloader's. As Pulsar deletes in
order, it has all that lies behind the position as long as it lists that ledger or an earlier one.
Then the table is not looked at. Otherwise what is refused makes the answer incomplete.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from reader import plan
from reader.clients import Clients
from reader.errors import ConfigurationError, UnsupportedError
from reader.model import Position
from reader.model.columns import rows_between
from reader.pulsar import PartitionLedgers
from reader.scan.row_scan import plan_scan
from reader.table import TopicTable, require_readable


@dataclass(frozen=True, slots=True)
class RowsBehind:
    """``batches``: the rows, in no order. ``incomplete``: whether some may be missing."""

    batches: Generator[pa.RecordBatch]
    incomplete: bool


def read_behind(
    clients: Clients,
    listing: PartitionLedgers,
    position: Position,
    columns: Sequence[str],
    where: pc.Expression,
) -> RowsBehind:
    """Return the rows of a partition behind ``position`` that match ``where``.

    ``listing``: the partition's ledgers of now. Raises ConfigurationError if the broker does not
    permit the topic, or for decryption keys that cannot be used; UnavailableError if the storage
    does not answer. The batches raise as those of ``TopicReader.scan``.
    """
    partition, settings = listing.partition, clients.settings
    clients.admin.require_consume(partition.topic)
    listed, lost_ledgers = {partition: listing}, settings.pulsar.lost_ledgers
    table, incomplete = None, False
    if not listing.ledgers or listing.ledgers[0].ledger_id > position.ledger:
        table, incomplete = _table(clients, listing)
    losses = plan.declared_losses(table, listed, lost_ledgers)
    if table is not None:
        recorded = (one for one in plan.recorded_losses(table) if one.partition == partition)
        losses += [*plan.new_losses(table, listed), *recorded]
        upto = table.numbers(partition).data_loss  # the log forgets losses, and not this
        incomplete = incomplete or (upto is not None and upto > position.ledger)
    incomplete = incomplete or any(_is_behind(one, position) for one in losses)
    snapshot = plan.snapshot_of(settings, partition.topic, listed, (), table)
    first = Position(position.ledger, position.entry + 1)
    where &= rows_between(partition.index, first, None)
    bounds = {partition.index: (first, None)}
    scan = plan_scan(clients, snapshot, columns, where=where, bounds=bounds)
    return RowsBehind(scan.batches(clients), incomplete)


def _table(clients: Clients, listing: PartitionLedgers) -> tuple[TopicTable | None, bool]:
    """Return the partition's table, and whether rows may be missing without a better one."""
    topic, listed = listing.partition.topic, {listing.partition: listing}

    def newest() -> TopicTable | None:
        return clients.newest_table(topic)

    uri = clients.storage.table_uri(topic) if clients.has_storage else ""
    try:
        table = plan.held_table(clients.admin, newest(), listed, uri, newest)
        if table is not None:
            plan.check_same_topic(clients.admin, table, listed)
            require_readable(table)
    except (ConfigurationError, UnsupportedError):
        return None, True
    return table, False


def _is_behind(loss: plan.DataLoss, position: Position) -> bool:
    """Return whether lost messages may lie behind ``position``."""
    is_declared = loss.before == loss.ledger
    return loss.before >= position.ledger if is_declared else loss.before > position.ledger
