"""EntryDecoder: the passes one after the other, group by group."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.decode.aborted_transactions import Transactions
from reader.decode.arrays import COLUMNS, Rows, key_array, payload_spans
from reader.decode.chunks import ChunkJoiner, ChunkSequence
from reader.decode.encryption.decryption import Decryption
from reader.decode.encryption.encryption_context import context_array
from reader.decode.encryption.headers import read_headers
from reader.decode.partition_context import NoContext, PartitionContext
from reader.decode.passes.decompression import inflate
from reader.decode.passes.messages import read_messages
from reader.decode.rescue import rescued_rows
from reader.decode.tables import (
    E_COMPRESSION,
    E_FLAGS,
    E_INFLATED,
    E_KIND,
    E_MESSAGES,
    E_METADATA_LENGTH,
    E_PAYLOAD_LENGTH,
    E_PRODUCER_LENGTH,
    E_PUBLISH,
    E_REPLICATED_LENGTH,
    E_SCHEMA,
    HIDDEN,
    IN_BATCH,
    MAX_BATCH,
    MESSAGES,
    MIN_SINGLE,
    NO_TIME,
    NONE,
    OUTSIDE,
    P_FIELDS,
    R_ENTRY,
    R_FIELDS,
    R_METADATA_LENGTH,
    R_SIZE,
    R_SOFT,
    SEEN_CHUNK,
    SEEN_ENCRYPTED,
    WHOLE,
)
from reader.kernels.byte_spans import ByteSpans
from reader.kernels.memory import empty_int64s
from reader.model import EntryBlock, Partition
from reader.model.columns import METADATA_NAMES

__all__ = ["HEADER_COLUMNS", "EntryDecoder", "Messages"]

# Bounds of one Messages, which a single entry or row may exceed.
GROUP_BYTES = 4 << 20
GROUP_ROWS = 1 << 18
SLICE_BYTES = 64 << 20
# Room for this many properties a message; where it is not enough, the pass is done again.
PAIRS_EACH = 2

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

_COLUMNS = COLUMNS | {"__encryptionContext": context_array}


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

    Remembers the outcomes of transactions and the chunks of each message. ``publish_times_seen``
    and ``messages_seen`` cover all entries given to ``decode``, also those outside of the publish
    range.
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
    ) -> None:
        """``publish_range``: µs since the epoch, inclusive; messages outside are left out.

        ``context``: the entries that are not given; None: there are no others.
        ``rescue_incomplete``: chunked messages that stay incomplete become rescued rows, see
        ``ChunkJoiner``. ``decryption``: opens encrypted entries; those that it cannot open are
        rescued rows. ``headers_only``: take the number of messages in a batch from its header and
        decompress nothing; for ``HEADER_COLUMNS`` alone, without ``payload`` and ``keys``. A batch
        that cannot be split, which is one rescued row, then counts as many as its header states.
        Raises ValueError for a column that is not one of ``METADATA_NAMES``.
        """
        unknown = set(columns) - set(METADATA_NAMES)
        if unknown:
            raise ValueError(f"no metadata columns: {', '.join(sorted(unknown))}")
        self._partition = partition
        self._columns = tuple(name for name in _COLUMNS if name in columns)
        self._payload = payload
        self._keys = keys
        self._range = publish_range
        self._transactions = Transactions((context or NoContext()).aborted)
        self._chunks = ChunkJoiner(
            context or NoContext(), rescue_incomplete=rescue_incomplete, decryption=decryption
        )
        self._decryption = decryption
        self._headers_only = headers_only
        if headers_only and (payload or keys or not set(columns) <= set(HEADER_COLUMNS)):
            raise ValueError("headers_only gives HEADER_COLUMNS alone")
        self._seen: tuple[int | None, int | None] = (None, None)
        self._count = 0
        self._encrypted = False

    @property
    def publish_times_seen(self) -> tuple[int | None, int | None]:
        """Least and greatest publish time so far, µs since the epoch; None without any."""
        return self._seen

    @property
    def messages_seen(self) -> int:
        """Rows given so far, and messages by the headers of entries outside of the range."""
        return self._count

    @property
    def encrypted_seen(self) -> bool:
        """Whether there was an encrypted entry, whose rows depend on the configured keys."""
        return self._encrypted

    @property
    def chunk_sequences(self) -> Mapping[bytes, ChunkSequence]:
        """The chunks so far of each message of which a chunk was given, by uuid."""
        return self._chunks.sequences

    def decode(self, block: EntryBlock) -> Iterator[Messages]:
        """Every message of ``block`` as a row, in bounded portions.

        Nothing is raised for what an entry holds. What ``context`` raises is raised before the
        first portion.
        """
        seen, block, entries = read_headers(block, self._decryption, *self._range)
        arena = block.arena
        self._transactions.hide_aborted(seen, entries)
        if seen & SEEN_CHUNK:
            block, arena = self._chunks.join(block, arena, entries)
        self._note(entries)
        self._encrypted = self._encrypted or bool(seen & SEEN_ENCRYPTED)
        if self._headers_only:
            return self._from_headers(block, _read_only(arena), entries)
        return self._portions(block, _read_only(arena), entries)

    def _note(self, entries: npt.NDArray[np.int64]) -> None:
        """Keep the publish times, and the number of messages that are not decoded."""
        kind = entries[E_KIND]
        known = (kind == MESSAGES) | (kind == WHOLE) | (kind == OUTSIDE)
        times = entries[E_PUBLISH, known & (entries[E_PUBLISH] != NO_TIME)]
        if len(times):
            low, high = int(times.min()), int(times.max())
            before, after = self._seen
            self._seen = (
                low if before is None else min(low, before),
                high if after is None else max(high, after),
            )
        outside = entries[:, kind == OUTSIDE]
        self._count += int(_rows_each(outside, _sizes(outside)).sum())

    def _from_headers(
        self, block: EntryBlock, arena: npt.NDArray[np.uint8], entries: npt.NDArray[np.int64]
    ) -> Iterator[Messages]:
        rows_of = self._rows_of(block, arena, entries)
        counts = np.where(_given(entries), _rows_each(entries, _sizes(entries)), 0)
        for first, stop in _groups(entries):
            number = int(counts[first:stop].sum())
            if not number:
                continue
            rows = np.zeros((R_FIELDS, number), np.int64)
            rows[R_ENTRY] = np.repeat(np.arange(first, stop), counts[first:stop])
            some = rows_of(
                inflated=arena,
                rows=rows,
                pairs=np.empty((P_FIELDS, 0), np.int64),
                first=0,
                stop=number,
            )
            yield self._messages(some, {})

    def _portions(
        self, block: EntryBlock, arena: npt.NDArray[np.uint8], entries: npt.NDArray[np.int64]
    ) -> Iterator[Messages]:
        rows_of = self._rows_of(block, arena, entries)
        wanted = "__messageProperties" in self._columns
        for first, stop in _groups(entries):
            target = inflate(arena, entries, first, stop)
            inflated = _read_only(target)
            most = _most_rows(entries[:, first:stop])
            # Fields that begin 5 cache lines apart do not compete for the same cache sets.
            width = most + (40 - most) % 512
            rows = empty_int64s(R_FIELDS * width).reshape(R_FIELDS, width)
            pairs = np.empty((P_FIELDS, PAIRS_EACH * rows.shape[1] if wanted else 0), np.int64)
            while True:
                count, pair_count = read_messages(
                    arena, inflated, target, entries, first, stop, rows, pairs
                )
                if not wanted or pair_count <= pairs.shape[1]:
                    break
                pairs = np.empty((P_FIELDS, pair_count), np.int64)
            for low, high in _slices(entries[:, first:stop], entries, rows, count):
                some = rows_of(
                    inflated=inflated,
                    rows=rows,
                    pairs=pairs,
                    first=low,
                    stop=high,
                )
                yield self._messages(some, rescued_rows(some, block))

    def _rows_of(
        self, block: EntryBlock, arena: npt.NDArray[np.uint8], entries: npt.NDArray[np.int64]
    ) -> partial[Rows]:
        """``Rows`` of a block, without what differs between its groups."""
        return partial(
            Rows,
            partition=self._partition.index,
            ledger_id=block.ledger_id,
            entry_ids=block.entry_ids,
            arena=arena,
            entries=entries,
        )

    def _messages(self, rows: Rows, rescued: Mapping[int, tuple[bytes, str]]) -> Messages:
        self._count += len(rows)
        return Messages(
            columns={name: _COLUMNS[name](rows) for name in self._columns},
            payload=payload_spans(rows) if self._payload else None,
            schema_versions=rows.entry(E_SCHEMA),
            rescued=rescued,
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
    """One a message; a batch that states more messages than its size can hold is one row."""
    count = group[E_MESSAGES]
    possible = (count > 0) & (count <= np.minimum(sizes // MIN_SINGLE, MAX_BATCH))
    batch = (group[E_KIND] != WHOLE) & (group[E_FLAGS] & IN_BATCH != 0) & possible
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
    given = _given(entries)
    sizes = np.where(entries[E_KIND] == MESSAGES, _sizes(entries), 0)
    size_sums = np.cumsum(sizes)
    row_sums = np.cumsum(np.where(given, _rows_each(entries, sizes), 0))
    first = 0
    while first < len(sizes):
        stop = min(_cut(size_sums, GROUP_BYTES, first), _cut(row_sums, GROUP_ROWS, first))
        yield first, stop
        first = stop


def _slices(
    group: npt.NDArray[np.int64],
    entries: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    count: int,
) -> Iterator[tuple[int, int]]:
    """(first, stop) of rows that make one Messages of about SLICE_BYTES.

    More than one only where, for example, a long producer name is repeated in each message of a
    batch.
    """
    if count == 0:
        return
    shared = int((group[E_PRODUCER_LENGTH] + group[E_REPLICATED_LENGTH]).max()) * count
    own = int((group[E_PAYLOAD_LENGTH] + group[E_METADATA_LENGTH]).sum())
    if shared + own <= SLICE_BYTES and not rows[R_SOFT, :count].any():
        yield 0, count
        return
    entry = rows[R_ENTRY, :count]
    weights = rows[R_SIZE, :count] + rows[R_METADATA_LENGTH, :count]
    weights = weights + entries[E_PRODUCER_LENGTH][entry] + entries[E_REPLICATED_LENGTH][entry]
    weights += np.where(rows[R_SOFT, :count] != 0, entries[E_METADATA_LENGTH][entry], 0)
    sums = np.cumsum(weights + 2)
    first = 0
    while first < count:
        stop = min(_cut(sums, SLICE_BYTES, first), count)
        yield first, stop
        first = stop
