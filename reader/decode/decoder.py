"""EntryDecoder: the passes one after the other, group by group."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.decode.aborted_transactions import Transactions
from reader.decode.arrays import Rows, key_array, payload_spans
from reader.decode.chunk_sequence import ChunkSequence
from reader.decode.chunks import ChunkJoiner
from reader.decode.encryption.decryption import Decryption
from reader.decode.encryption.encryption_context import context_bytes
from reader.decode.encryption.headers import read_headers
from reader.decode.joined_blocks import join_blocks
from reader.decode.metadata_columns import MetadataColumns
from reader.decode.partition_context import NoContext, PartitionContext
from reader.decode.passes.decompression import inflate, refuse_bombs
from reader.decode.passes.messages import read_messages
from reader.decode.rescue import rescued_rows
from reader.decode.seen import BlocksSeen, Seen
from reader.decode.tables import (
    C_ENTRY,
    C_FIELDS,
    E_COMPRESSION,
    E_FLAGS,
    E_INFLATED,
    E_KIND,
    E_MESSAGES,
    E_METADATA_LENGTH,
    E_PAYLOAD_LENGTH,
    E_PRODUCER_LENGTH,
    E_REASON,
    E_REPLICATED_LENGTH,
    E_ROW_BYTES,
    HIDDEN,
    IN_BATCH,
    MAX_BATCH,
    MESSAGES,
    MIN_PAIR,
    MIN_SINGLE,
    NONE,
    OUTSIDE,
    P_FIELDS,
    R_ENTRY,
    R_FIELDS,
    SEEN_CHUNK,
    SEEN_ENCRYPTED,
    SEEN_TRANSACTION,
)
from reader.kernels.byte_spans import ByteSpans
from reader.kernels.memory import empty_int64s
from reader.model import EntryBlock, Partition
from reader.model.columns import METADATA_NAMES

__all__ = ["HEADER_COLUMNS", "EntryDecoder", "Messages"]

# So many bytes are decompressed at once, unless one entry has more: a block of 4 MiB as a whole,
# where it inflates no more than three times.
GROUP_BYTES = 12 << 20
# Bounds of one Messages: its rows, their properties, and the bytes of its columns, payloads and raw
# bytes, which a single row may exceed. An entry of a few kB can hold millions of messages.
PORTION_ROWS = 1 << 16
PORTION_PAIRS = 1 << 18
PORTION_BYTES = 32 << 20

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
    ``__rescued`` and ``__error``. ``payload`` is not present in messages without a value and in
    entries rescued whole; None if it was not wanted. ``schema_versions`` has -1 where a
    message has none. ``keys`` are bytes, null without a key; None if they were not wanted.
    ``rescued`` maps a row to its raw bytes and the reason; see the package for what they are.
    """

    columns: Mapping[str, pa.Array]
    payload: ByteSpans | None
    schema_versions: npt.NDArray[np.int64]
    rescued: Mapping[int, tuple[bytes, str]]
    keys: pa.LargeBinaryArray | None = None

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
        context: PartitionContext | None = None,
        rescue_incomplete: bool = False,
        decryption: Decryption | None = None,
        headers_only: bool = False,
        row_bytes: int = 0,
    ) -> None:
        """``publish_range``: µs since the epoch, inclusive; messages outside are left out.

        ``context``: the entries that are not given; None: there are no others.
        ``rescue_incomplete``: chunked messages that stay incomplete become rescued rows, see
        ``ChunkJoiner``. ``decryption``: opens encrypted entries; those that it cannot open are
        rescued rows. ``headers_only``: take the number of messages in a batch from its header and
        decompress nothing; for ``HEADER_COLUMNS`` alone, without ``payload`` and ``keys``. A batch
        that cannot be split, which is one rescued row, then counts as many as its header states.
        ``row_bytes``: what the caller adds to each row, for the bound of a portion.
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
        self._context = context or NoContext()
        self._transactions = Transactions(
            lambda ledger_id, unknown: self._context.aborted(ledger_id, unknown)
        )
        self._rescue_incomplete = rescue_incomplete
        self._decryption = decryption
        self.begin(self._context)
        self._headers_only = headers_only
        self._row_bytes = row_bytes
        if headers_only and (payload or keys or not set(columns) <= set(HEADER_COLUMNS)):
            raise ValueError("headers_only gives HEADER_COLUMNS alone")
        self._seen: list[Seen] = []

    def begin(self, context: PartitionContext) -> None:
        """Entries of another place of the partition follow; ``context``: as seen from there."""
        self._context = context
        self._chunks = ChunkJoiner(
            context, rescue_incomplete=self._rescue_incomplete, decryption=self._decryption
        )

    def take_seen(self) -> list[Seen]:
        """What was seen of each block since this was last asked for; once its rows were taken."""
        seen, self._seen = self._seen, []
        return seen

    @property
    def chunk_sequences(self) -> Mapping[bytes, ChunkSequence]:
        """The chunks so far of each message of which a chunk was given, by uuid."""
        return self._chunks.sequences

    def take_chunk_changes(self) -> Mapping[bytes, ChunkSequence]:
        """Of ``chunk_sequences`` those that have changed since this was last asked for."""
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
        if seen & SEEN_CHUNK:
            block, arena = self._chunks.join(block, arena, entries)
        ledger_ids = np.full(len(block), block.ledger_id)
        return self._decided(block, arena, entries, ledger_ids, [0], seen)

    def decode_together(self, blocks: Sequence[EntryBlock]) -> Iterator[Messages] | None:
        """As ``decode`` of one after the other, in common portions; they may be of several ledgers.

        None where that cannot be, because entries need the rest of the partition.
        """
        block, ledger_ids, starts = join_blocks([one for one in blocks if len(one)])
        seen, block, entries = read_headers(block, self._decryption, *self._range)
        if seen & (SEEN_CHUNK | SEEN_TRANSACTION):
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
        refuse_bombs(entries)
        outside = np.where(entries[E_KIND] == OUTSIDE, _rows_each(entries, _sizes(entries)), 0)
        tally = BlocksSeen(entries, starts, outside, bool(seen & SEEN_ENCRYPTED))
        self._seen += tally.blocks
        rows_of = partial(
            Rows,
            partition=self._partition.index,
            ledger_ids=ledger_ids,
            entry_ids=block.entry_ids,
            arena=_read_only(arena),
            entries=entries,
        )
        if self._headers_only:
            return self._from_headers(rows_of, entries, tally)
        return self._portions(rows_of, block, entries, tally)

    def _from_headers(
        self, rows_of: partial[Rows], entries: npt.NDArray[np.int64], tally: BlocksSeen
    ) -> Iterator[Messages]:
        counts = np.where(_given(entries), _rows_each(entries, _sizes(entries)), 0)
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        for first in range(0, total, PORTION_ROWS):
            numbers = np.arange(first, min(first + PORTION_ROWS, total))
            rows = np.zeros((R_FIELDS, len(numbers)), np.int64)
            rows[R_ENTRY] = np.searchsorted(ends, numbers, side="right")
            some = rows_of(
                inflated=rows_of.keywords["arena"],
                rows=rows,
                pairs=np.empty((P_FIELDS, 0), np.int64),
                count=len(numbers),
            )
            yield self._messages(some, tally)

    def _portions(
        self,
        rows_of: partial[Rows],
        block: EntryBlock,
        entries: npt.NDArray[np.int64],
        tally: BlocksSeen,
    ) -> Iterator[Messages]:
        arena = rows_of.keywords["arena"]
        entries[E_ROW_BYTES] = self._row_bytes
        entries[E_ROW_BYTES] += entries[E_PRODUCER_LENGTH] + entries[E_REPLICATED_LENGTH] + 2
        if "__encryptionContext" in self._columns:
            entries[E_ROW_BYTES] += context_bytes(entries)
        for first, stop in _groups(entries):
            target = inflate(arena, entries, first, stop)
            inflated = _read_only(target)
            group = entries[:, first:stop]
            most = min(_most_rows(group), PORTION_ROWS)
            # Fields that begin 5 cache lines apart do not compete for the same cache sets.
            width = most + 1 + (39 - most) % 512
            rows = empty_int64s(R_FIELDS * width).reshape(R_FIELDS, width)
            room = 0
            if "__messageProperties" in self._columns:
                own = int(_sizes(group).sum() + group[E_METADATA_LENGTH].sum())
                room = min(PORTION_PAIRS, own // MIN_PAIR + 1)
            pairs = empty_int64s(P_FIELDS * room).reshape(P_FIELDS, room)
            cursor = np.zeros(C_FIELDS, np.int64)
            cursor[C_ENTRY] = first
            while cursor[C_ENTRY] < stop:
                count = read_messages(
                    arena,
                    inflated,
                    target,
                    entries,
                    cursor,
                    stop,
                    most,
                    PORTION_BYTES,
                    rows,
                    pairs,
                )
                if count:
                    some = rows_of(inflated=inflated, rows=rows, pairs=pairs, count=count)
                    yield self._messages(some, tally, block)

    def _messages(self, rows: Rows, tally: BlocksSeen, block: EntryBlock | None = None) -> Messages:
        """Without ``block`` no row is rescued."""
        tally.add_rows(rows.row(R_ENTRY))
        columns, versions, rescued = self._metadata.of(rows, encrypted=tally.encrypted)
        return Messages(
            columns=columns,
            payload=payload_spans(rows) if self._payload else None,
            schema_versions=versions,
            rescued=rescued_rows(rows, block) if rescued and block is not None else {},
            keys=key_array(rows) if self._keys else None,
        )


def _read_only(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A view that kernels see as one type, whoever made the array."""
    view = array.view()
    view.flags.writeable = False
    return view


def _most_rows(group: npt.NDArray[np.int64]) -> int:
    """How many rows these entries can become."""
    return int(_rows_each(group, _sizes(group))[_given(group)].sum())


def _sizes(group: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Inflated payload sizes, as the headers state them."""
    plain = group[E_COMPRESSION] == NONE
    sizes: npt.NDArray[np.int64] = np.where(plain, group[E_PAYLOAD_LENGTH], group[E_INFLATED])
    return sizes


def _rows_each(group: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """One a message; a batch that is rescued whole, or cannot hold what it states, is one row."""
    count = group[E_MESSAGES]
    possible = (count > 0) & (count <= np.minimum(sizes // MIN_SINGLE, MAX_BATCH))
    batch = (group[E_REASON] == 0) & (group[E_FLAGS] & IN_BATCH != 0) & possible
    return np.where(batch, count, 1)


def _given(group: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    given: npt.NDArray[np.bool_] = (group[E_KIND] != HIDDEN) & (group[E_KIND] != OUTSIDE)
    return given


def _cut(weights: npt.NDArray[np.int64], most: int, start: int) -> int:
    """Where ``most`` of the cumulated ``weights`` from ``start`` on ends; one element at least."""
    before = weights[start - 1] if start else 0
    return max(int(np.searchsorted(weights, before + most, side="right")), start + 1)


def _groups(entries: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """(first, stop) of entries that are decompressed together."""
    sums = np.cumsum(np.where(entries[E_KIND] == MESSAGES, _sizes(entries), 0))
    first = 0
    while first < len(sums):
        stop = _cut(sums, GROUP_BYTES, first)
        yield first, stop
        first = stop
