"""Transactions that compute the metadata of their table once for each change."""

from pyiceberg.table import CreateTableTransaction, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate


class ChangingTransaction(Transaction):
    """A transaction on a table that exists.

    PyIceberg 0.12 reads ``table_metadata`` some twenty times for a commit. Each time it applies all
    updates to the table's metadata again, and makes a deep copy. That was half a commit's time.
    """

    _computed: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """The table's metadata with all updates so far. Callers may not change it."""
        computed, table, updates = self._computed, self._table.metadata, self._updates
        if not updates:
            return table
        if computed is None or computed[0] is not table or computed[1] is not updates:
            self._computed = computed = (table, updates, super().table_metadata)
        return computed[2]


class CreatingTransaction(ChangingTransaction, CreateTableTransaction):
    """A transaction that creates a table."""
