"""Rows of a ledger that has left BookKeeper since the snapshot, out of the newest table."""

from collections.abc import Generator

import pyarrow as pa
import pyarrow.compute as pc

from reader.decode import Decryption
from reader.errors import NotFoundError
from reader.model import BEFORE_ALL, Position, Split
from reader.model.columns import TIMESTAMP
from reader.model.row_kinds import RowKind, is_kind, is_not_kind
from reader.plan import EncryptedRead
from reader.sources.base import Delivered, RowSource, Step
from reader.sources.encrypted import read_encrypted
from reader.sources.row_format import RowFormat, conform
from reader.sources.source_clients import SourceClients
from reader.table import OffloadedLedger, TopicTable, records_upto


class MovedLedger(RowSource):
    """A ledger that has left BookKeeper, from the newest version of its topic's table.

    ``decryption``: opens the encrypted entries that the table holds; None: they stay as they are.
    """

    ordered = False

    def __init__(
        self, clients: SourceClients, rows: RowFormat, *, decryption: Decryption | None = None
    ) -> None:
        self._clients = clients
        self._rows = rows
        self._decryption = decryption

    def read(self, split: Split, first: int) -> Generator[Step]:
        """See ``RowSource.read``. Raises NotFoundError where the table has not all of the range."""
        if first > split.last_entry:
            return
        partition, ledger_id = split.partition, split.ledger_id
        if not self._clients.has_storage:
            raise _not_there(split, "cannot be looked for in the table", "storage.uri is not set")
        table = TopicTable.open(self._clients.storage, partition.topic)
        wanted = {partition.index: ledger_id}
        records = records_upto(table.commits(), wanted) if table else {}
        record = records.get(partition.index)
        named = record is not None and (record.ledger == ledger_id or record.lost)
        if table is None or record is None or not named:
            raise _not_there(
                split,
                "is not in the table",
                "it was deleted before it was offloaded (retention, TTL or backlog), or offloaded "
                "longer ago than the table's log remembers, or a ledger before it has gone since: "
                "make the query anew",
            )
        _check_record(record, split)
        where = (
            (pc.field("__partition") == partition.index)
            & (pc.field("__ledgerId") == ledger_id)
            & (pc.field("__entryId") >= first)
            & (pc.field("__entryId") <= split.last_entry)
        )
        expected = None
        given_up = strays = 0
        if table.count(where & is_kind(RowKind.INCOMPLETE, RowKind.UNMATCHED)):  # rare
            given_up = table.count(where & is_kind(RowKind.INCOMPLETE))
            strays = table.count(where & is_kind(RowKind.UNMATCHED))
        # The snapshot may have seen the ledger while it was open, and shorter. Rows of what was
        # given up may be in the commit's number or not: they may stand for some that expired.
        whole = split.whole and first == split.first_entry and split.entries == record.entries
        if whole and not given_up:
            expected = record.rows
        _check_rows(table, split, table.count(where), expected)
        if strays:
            raise _not_there(
                split,
                "is in the table with chunks that fit no message",
                "their message may have been given up since the query's snapshot: make the query "
                "anew",
            )
        # Given up since: where a ledger was to be read from Pulsar, its chunks were no row yet.
        if given_up:
            where &= is_not_kind(RowKind.INCOMPLETE)
        decryption = self._decryption if table.topic_numbers.ciphertext is not None else None
        low, high = self._rows.publish_range
        if low is not None:
            where &= pc.field("__publishTime") >= pa.scalar(low, TIMESTAMP)
        if high is not None:
            where &= pc.field("__publishTime") <= pa.scalar(high, TIMESTAMP)
        if decryption is not None:
            where &= is_not_kind(RowKind.ENCRYPTED)
        for batch in table.batches(self._rows.columns.names, where):
            yield conform(batch, self._rows.columns)
        if decryption is not None:
            entries = Position(ledger_id, first), Position(ledger_id, split.last_entry)
            read = EncryptedRead(partition, table.version, entries, BEFORE_ALL, table)
            yield from read_encrypted(self._clients, read, self._rows)
        yield Delivered(split.last_entry)


def _not_there(split: Split, what: str, hint: str) -> NotFoundError:
    return NotFoundError(f"ledger {split.ledger_id} of {split.partition} {what}", hint=hint)


def _check_record(record: OffloadedLedger, split: Split) -> None:
    """Whether a commit has added the split's ledger with all that the query's snapshot saw of it.

    A watermark above the ledger does not say so: commits step over what was deleted before.
    """
    if record.lost:
        raise _not_there(
            split,
            "was deleted before it was offloaded: the log names it as lost",
            "retention, TTL or backlog; a new query says what is left",
        )
    identity = split.identity
    if identity is not None and record.closed_at not in (None, identity.closed_at):
        raise _not_there(
            split,
            f"was closed at {record.closed_at} (ms) where it was offloaded; the query's snapshot "
            f"saw another one, closed at {identity.closed_at}",
            "the cluster was restored; make the query anew",
        )
    if record.entries <= split.last_entry:
        raise _not_there(
            split,
            f"was offloaded with {record.entries} entries; the query's snapshot saw more than "
            f"{split.last_entry}",
            "the cluster may have been restored; make the query anew",
        )


def _check_rows(table: TopicTable, split: Split, found: int, expected: int | None) -> None:
    """Refuse to give fewer rows than were offloaded (row expiry may have removed some).

    ``expected``: how many the range had; None: of a part of a ledger nobody knows.
    """
    hint = "rows have expired since the query's snapshot: make the query anew"
    if expected is not None and found < expected:
        raise NotFoundError(
            f"the table has {found} of the {expected} rows of ledger {split.ledger_id} of "
            f"{split.partition}",
            hint=hint,
        )
    if expected is None and split.ledger_id <= table.numbers(split.partition).expired_upto.ledger:
        raise NotFoundError(
            f"rows of ledger {split.ledger_id} of {split.partition} may have expired", hint=hint
        )
