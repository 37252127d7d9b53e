"""EntryDecoder: the passes one after the other, group by group."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.decode import tables
from reader.decode.aborted_transactions import Transactions
from reader.decode.arrays import Rows, key_array, payload_spans, stored_times
from reader.decode.chunk_sequence import ChunkSequence
from reader.decode.chunks import ChunkJoiner
from reader.decode.encryption.decryption import Decryption
from reader.decode.encryption.encryption_context import context_bytes
from reader.decode.encryption.headers import read_headers
from reader.decode.joined_blocks import join_blocks
from reader.decode.metadata_columns import MetadataColumns
from reader.decode.partition_context import NoContext, PartitionContext
from reader.decode.passes.decompression import keep_singles_compressed, refuse_bombs
from reader.decode.passes.portions import portions
from reader.decode.rescue import RescuedRow, rescued_rows
from reader.decode.seen import BlocksSeen, Seen
from reader.kernels.byte_spans import ByteSpans
from reader.model import EntryBlock, Partition, StoredTimes
from reader.model.columns import METADATA_NAMES

HEADER_COLUMNS = (
    "__partition",
    "__ledgerId",
    "__entryId",
    "__publishTime",
    "__brokerPublishTime",
    "__deliverAt",
    "__schemaVersion",
)
"""Columns that are the same for all messages of an entry, and of a bounded size."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Decoded messages, in the order of the log; every array has n elements.

    ``columns`` holds the wanted ones of ``reader.model.columns.METADATA``, except ``__topic``,
    ``__kind``, ``__rescued`` and ``__error``. ``payload`` is not present in messages without a
    value and in entries rescued whole; None if it was not wanted. ``schema_versions`` has
    -1 where a message has none. ``keys`` are bytes, null without a key; None if they were not
    wanted.
    ``rescued``: the rescued rows by their number; see the package for what they are.
    ``stored``: when each was stored, None without payloads.
    """

    columns: Mapping[str, pa.Array]
    payload: ByteSpans | None
    schema_versions: npt.NDArray[np.int64]
    rescued: Mapping[int, RescuedRow]
    keys: pa.LargeBinaryArray | None = None
    stored: StoredTimes | None = None

    def __len__(self) -> int:
        return len(self.schema_versions)


class EntryDecoder:
    """Decodes entries of one partition, given in the order of the log.

    Remembers the outcomes of transactions and the chunks of each message.
    """

    def __init__(
        self,
        partition: Partition,
        *,
        columns: Collection[str] = METADATA_NAMES,
        payload: bool = True,
        keys: bool = False,
        publish_range: tuple[int | None, int | None] = (None, None),
        decryption: Decryption | None = None,
        row_bytes: int = 0,
        expanded_bytes: int = tables.FREE_INFLATED,
    ) -> None:
        """``publish_range``: µs since the epoch, inclusive; messages outside are left out.

        ``decryption``: opens encrypted entries; those that it cannot open are rescued rows.
        ``row_bytes``: what the caller adds to each row, for the bound of a portion.
        ``expanded_bytes``: payloads that state more, and MAX_RATIO times what is stored, are not
        decompressed.

        Where nothing but ``HEADER_COLUMNS`` is wanted, messages outside of batches stay compressed,
        and raw bytes of rescued rows are not given.

        Raises ValueError for a column that is not one of ``METADATA_NAMES``.
        """
        unknown = set(columns) - set(METADATA_NAMES)
        if unknown:
            raise ValueError(f"no metadata columns: {', '.join(sorted(unknown))}")
        self._partition = partition
        self._columns = frozenset(columns)
        self._metadata = MetadataColumns(columns)
        self._payload = payload
        self._keys = keys
        self._range = publish_range
        self._headers_only = not (payload or keys) and self._columns <= set(HEADER_COLUMNS)
        self._transactions = Transactions(
            lambda ledger_id, unknown: self._context.aborted(ledger_id, unknown)
        )
        self._decryption = decryption
        self.begin(NoContext())
        self._row_bytes = row_bytes
        self._expanded_bytes = expanded_bytes
        self._seen: list[Seen] = []

    def begin(self, context: PartitionContext, *, rescue_incomplete: bool = False) -> None:
        """Entries of another place of the partition follow; ``context``: as seen from there.

        Before it is called, there are none but those given. ``rescue_incomplete``: chunked messages
        that stay incomplete become rescued rows, see ``ChunkJoiner``.
        """
        self._context = context
        self._chunks = ChunkJoiner(
            context, rescue_incomplete=rescue_incomplete, decryption=self._decryption
        )

    def take_seen(self) -> list[Seen]:
        """What was seen of each block since this was last asked for; once its rows were taken."""
        seen, self._seen = self._seen, []
        return seen

    @property
    def incomplete_chunks(self) -> Mapping[bytes, ChunkSequence]:
        """The chunks so far of each message that the given entries leave incomplete, by uuid."""
        return self._chunks.incomplete

    def take_chunk_changes(self) -> Mapping[bytes, ChunkSequence]:
        """How far messages have come of which a chunk was given since this was last asked for."""
        return self._chunks.take_changes()

    def decode(self, block: EntryBlock) -> Iterator[Messages]:
        """Every message of ``block`` as a row, in bounded portions.

        Nothing is raised for what an entry holds. What ``context`` raises is raised before the
        first portion.
        """
        if not len(block):
            self._seen.append(Seen())
            return iter(())
        seen, block, entries = read_headers(block, self._decryption, *self._range)
        arena = block.arena
        self._transactions.hide_aborted(seen, block.ledger_id, entries)
        if seen & tables.SEEN_CHUNK:
            block, arena = self._chunks.join(block, arena, entries)
        ledger_ids = np.full(len(block), block.ledger_id)
        return self._decided(block, arena, entries, ledger_ids, [0], seen)

    def decode_together(self, blocks: Sequence[EntryBlock]) -> Iterator[Messages] | None:
        """As ``decode`` of one after the other, in common portions; they may be of several ledgers.

        None where that cannot be, because entries need the rest of the partition.
        """
        block, ledger_ids, starts = join_blocks([one for one in blocks if len(one)])
        seen, block, entries = read_headers(block, self._decryption, *self._range)
        if seen & (tables.SEEN_CHUNK | tables.SEEN_TRANSACTION):
            return None
        return self._decided(block, block.arena, entries, ledger_ids, starts, seen)

    def _decided(
        self,
        block: EntryBlock,
        arena: npt.NDArray[np.uint8],
        entries: npt.NDArray[np.int64],
        ledger_ids: npt.NDArray[np.int64],
        starts: Sequence[int],
        seen: int,
    ) -> Iterator[Messages]:
        """The rows of entries of which it is decided what they are."""
        refuse_bombs(entries, self._expanded_bytes)
        arena = _read_only(arena)
        tally = BlocksSeen(entries, starts, encrypted=bool(seen & tables.SEEN_ENCRYPTED))
        self._seen += tally.blocks
        if self._headers_only:
            keep_singles_compressed(entries)
        entries[tables.E_ROW_BYTES] = self._row_bytes
        entries[tables.E_ROW_BYTES] += (
            entries[tables.E_PRODUCER_LENGTH] + entries[tables.E_REPLICATED_LENGTH] + 2
        )
        if "__encryptionContext" in self._columns:
            entries[tables.E_ROW_BYTES] += context_bytes(entries)
        if "__otherMetadata" in self._columns:
            has_other = entries[tables.E_FLAGS] & tables.HAS_OTHER != 0
            entries[tables.E_ROW_BYTES] += np.where(has_other, entries[tables.E_METADATA_LENGTH], 0)
        return self._portions(block, arena, entries, ledger_ids, tally)

    def _portions(
        self,
        block: EntryBlock,
        arena: npt.NDArray[np.uint8],
        entries: npt.NDArray[np.int64],
        ledger_ids: npt.NDArray[np.int64],
        tally: BlocksSeen,
    ) -> Iterator[Messages]:
        with_pairs = "__messageProperties" in self._columns
        for inflated, table, pairs, count in portions(arena, entries, with_pairs=with_pairs):
            rows = Rows(
                partition=self._partition.index,
                ledger_ids=ledger_ids,
                entry_ids=block.entry_ids,
                arena=arena,
                inflated=inflated,
                entries=entries,
                rows=table,
                pairs=pairs,
                count=count,
            )
            yield self._messages(rows, tally, block)

    def _messages(self, rows: Rows, tally: BlocksSeen, block: EntryBlock) -> Messages:
        tally.add_rows(rows.row(tables.R_ENTRY))
        columns, versions, rescued = self._metadata.of(rows, encrypted=tally.encrypted)
        return Messages(
            columns=columns,
            payload=payload_spans(rows) if self._payload else None,
            schema_versions=versions,
            rescued=rescued_rows(rows, block) if rescued and not self._headers_only else {},
            keys=key_array(rows) if self._keys else None,
            stored=stored_times(rows) if self._payload else None,
        )


def _read_only(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A view that kernels see as one type, whoever made the array."""
    view = array.view()
    view.flags.writeable = False
    return view
