"""A split to Arrow batches, from whichever tier can give it.

    broker (a short tail) ── entries that its client leaves out ──▶ bookkeeper
    bookkeeper ── bookies silent, entries not handled ──▶ broker
    bookkeeper, broker ── ledger left BookKeeper ───────▶ the newest table

Each step down goes on after the last entry delivered, so no row is missed or doubled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from threading import Event

import pyarrow as pa
import pyarrow.compute as pc

from reader.closing import Closing
from reader.config import ReadConfig
from reader.decode import HEADER_COLUMNS, ChunkSequence, Decryption, EntryDecoder, Messages
from reader.errors import (
    CorruptError,
    LedgerGoneError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
    UnsupportedError,
)
from reader.model import LedgerMetadata, Position, Split, Tier
from reader.model.columns import IS_CIPHERTEXT, TIMESTAMP
from reader.model.reasons import Reason
from reader.plan.publish_times import LearnedTimes, PublishTimeStore
from reader.prefetch import Ahead
from reader.private_keys import open_decryption
from reader.pulsar.admin import AdminClient
from reader.sources.broker import BrokerSource
from reader.sources.ciphertext import read_ciphertext
from reader.sources.lookback import Surroundings, open_bookies
from reader.sources.rows import RowBuilder, RowFormat, conform
from reader.storage import open_storage
from reader.table import TopicTable

__all__ = ["read_split", "read_splits"]

PublishRange = tuple[int | None, int | None]
# A batch of rows, or the id of the entry up to which all rows have been given.
_Steps = Iterator[pa.RecordBatch | int]


def read_split(
    config: ReadConfig,
    split: Split,
    rows: RowFormat,
    *,
    publish_range: PublishRange = (None, None),
    fall_back: bool = True,
    decrypt: bool = True,
    chunks: dict[bytes, ChunkSequence] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The split's rows in order; batches have exactly ``rows.columns``.

    ``publish_range`` (µs, inclusive) drops whole entries early; the caller still filters.
    ``fall_back=False`` keeps to the split's tier, for offloading: a row must not lose columns
    because a bookie was slow. ``decrypt=False`` leaves encrypted entries as they are, whatever keys
    are configured. ``chunks`` collects how far chunked messages have come, by uuid.
    """
    for _, batch in read_splits(
        config,
        [split],
        rows,
        publish_range=publish_range,
        fall_back=fall_back,
        decrypt=decrypt,
        chunks=chunks,
    ):
        yield batch


def read_splits(
    config: ReadConfig,
    splits: Iterable[Split],
    rows: RowFormat,
    *,
    publish_range: PublishRange = (None, None),
    fall_back: bool = True,
    decrypt: bool = True,
    chunks: dict[bytes, ChunkSequence] | None = None,
) -> Iterator[tuple[Split, pa.RecordBatch]]:
    """As ``read_split``, in order; the first rows of the next split are read meanwhile.

    The broker's reader goes on from split to split.
    """
    decryption = open_decryption(config.encryption) if decrypt else None
    waiting = iter(splits)
    begun: deque[_Reading] = deque()
    with BrokerSource(config.pulsar) as broker:
        try:
            while True:
                for split in islice(waiting, 2 - len(begun)):
                    begun.append(
                        _Reading(
                            config,
                            split,
                            rows,
                            publish_range,
                            fall_back,
                            decryption,
                            broker,
                        )
                    )
                if not begun:
                    return
                yield from begun[0].rows_in_turn()
                done = begun.popleft()
                done.close()
                if chunks is not None:
                    # In the splits' order: the last word on a message is the last split's.
                    chunks.update(done.chunks)
        finally:
            for one in begun:
                one.close()


@dataclass
class _Reading(Closing):
    """One split being read, from when it is made: where it is, and from which tier it goes on."""

    config: ReadConfig
    split: Split
    rows: RowFormat
    publish_range: PublishRange
    fall_back: bool
    decryption: Decryption | None
    broker: BrokerSource

    def __post_init__(self) -> None:
        self._tier: Tier = self.split.tier
        self._ledger = self.split.metadata
        self._first = self.split.first_entry
        # What the broker's client leaves out, BookKeeper has, where the tail might be read there.
        self._strict = self.split.reason.kind is Reason.SHORT_TAIL and self.fall_back
        self.chunks: dict[bytes, ChunkSequence] = {}
        self._turn = Event()
        self._given_up = False
        self._made = Ahead(self._batches(), 1)

    def rows_in_turn(self) -> Iterator[tuple[Split, pa.RecordBatch]]:
        """All rows. Only now may it use the broker, which those before it have used."""
        self._turn.set()
        for batch in self._made:
            yield self.split, batch

    def close(self) -> None:
        """Stop reading."""
        self._given_up = True
        self._turn.set()
        self._made.close()

    def _batches(self) -> Generator[pa.RecordBatch]:
        while self._first <= self.split.last_entry:
            try:
                for step in self._steps():
                    if isinstance(step, int):
                        self._first = step + 1
                    elif step.num_rows:
                        yield step
                return
            except (NotFoundError, CorruptError, UnavailableError, UnsupportedError) as error:
                if self._tier == "parquet":
                    raise
                self._go_on_after(error)

    def _steps(self) -> _Steps:
        match self._tier:
            case "parquet":
                return self._from_table()
            case "broker":
                return self._from_broker()
        if self._ledger is None:
            raise NotFoundError(f"Pulsar no longer lists ledger {self.split.ledger_id}")
        return self._from_bookkeeper(self._ledger)

    def _go_on_after(self, error: PulsarLakeError) -> None:
        """Choose where to go on, or raise the error."""
        tier, split = self._tier, self.split
        if isinstance(error, UnsupportedError):
            if tier == "broker" and self._strict:
                self._strict = False
                self._tier = "broker" if self._ledger is None else "bookkeeper"
                return
            if tier == "bookkeeper" and self.fall_back:
                self._tier = "broker"
                return
            raise error
        with AdminClient(self.config.pulsar) as admin:
            try:
                listed = {one.ledger_id: one for one in admin.ledgers(split.partition).ledgers}
            except NotFoundError:
                listed = {}  # the topic was deleted
        found = listed.get(split.ledger_id)
        if (found is None or isinstance(error, LedgerGoneError)) and self.fall_back:
            self._tier = "parquet"
        elif found is None or tier != "bookkeeper":
            raise error
        elif found.metadata is not None and found.metadata != self._ledger:
            self._ledger = found.metadata  # its ensembles changed since the plan
        elif self.fall_back and not isinstance(error, CorruptError):
            self._tier, self._strict = "broker", False
        else:
            raise error

    def _from_bookkeeper(self, ledger: LedgerMetadata) -> _Steps:
        split, first = self.split, self._first
        start = Position(split.ledger_id, first)
        lookback = min(start, split.lookback or start)
        context = Surroundings(self.config, split.partition, start, lookback, self.decryption)
        builder = RowBuilder(split.partition, self.rows)
        decoder = builder.entry_decoder(
            context,
            decryption=self.decryption,
            publish_range=self.publish_range,
            headers_only=self._headers_suffice(),
        )

        def decoded() -> Generator[Messages | int]:
            for block in blocks:
                # The decoder raises, if at all, before it gives a block's first messages.
                yield from decoder.decode(block)
                self.chunks.update(decoder.chunk_sequences)
                yield int(block.entry_ids[-1])

        # Fetching, finding the messages and building their rows each go on while the others do.
        with (
            context,
            open_bookies(self.config) as bookies,
            Ahead(bookies.read(ledger, first, split.last_entry), 2) as blocks,
            Ahead(decoded(), 2) as steps,
        ):
            for step in steps:
                yield step if isinstance(step, int) else builder.build(step)
        whole = split.state == "sealed" and first == split.first_entry
        if whole and not decoder.encrypted_seen:
            self._learn(decoder)

    def _headers_suffice(self) -> bool:
        wanted = set(self.rows.metadata_columns)
        believed = self.config.query.count_from_headers and self.fall_back
        return believed and not self.rows.needs_payload and wanted <= set(HEADER_COLUMNS)

    def _learn(self, decoder: EntryDecoder) -> None:
        split = self.split
        low, high = decoder.publish_times_seen
        PublishTimeStore(self.config, split.partition.topic).learn(
            LearnedTimes(
                partition=split.partition.index,
                ledger=split.ledger_id,
                first=split.first_entry,
                last=split.last_entry,
                messages=decoder.messages_seen,
                low=low,
                high=high,
            )
        )

    def _from_broker(self) -> _Steps:
        self._turn.wait()
        if self._given_up:
            return
        split = self.split
        builder = RowBuilder(split.partition, self.rows)
        first = Position(split.ledger_id, self._first)
        # Planned for the broker, it has to see all of a chunked message; where it only helps out,
        # the bookies serve most splits, and each would begin at the same place again.
        planned = split.tier == "broker" and not self._strict
        for last, messages in self.broker.read(
            split.partition,
            first,
            Position(split.ledger_id, split.last_entry),
            start=min(first, split.lookback or first) if planned else first,
            columns=self.rows.metadata_columns,
            keys=builder.needs_keys,
            publish_range=self.publish_range,
            strict=self._strict,
        ):
            yield builder.build(messages)
            yield last

    def _from_table(self) -> _Steps:
        """A ledger that left BookKeeper since the snapshot, from the newest table version.

        Raises NotFoundError where the table does not have it, or not all of it.
        """
        split, partition, ledger_id = self.split, self.split.partition, self.split.ledger_id
        table = TopicTable.open(open_storage(self.config.storage), partition.topic)
        if table is None or table.watermark(partition) < ledger_id:
            raise NotFoundError(
                f"ledger {ledger_id} of {partition} has left BookKeeper and is not in the table",
                hint="its messages were deleted before they were offloaded: "
                "retention, TTL or backlog",
            )
        place = (
            (pc.field("__partition") == partition.index)
            & (pc.field("__ledgerId") == ledger_id)
            & (pc.field("__entryId") >= self._first)
            & (pc.field("__entryId") <= split.last_entry)
        )
        whole = split.whole and self._first == split.first_entry
        _require_rows(table, split, table.dataset().count_rows(filter=place), whole=whole)
        opened = self.decryption is not None and table.has_ciphertext
        low, high = self.publish_range
        if low is not None:
            place &= pc.field("__publishTime") >= pa.scalar(low, TIMESTAMP)
        if high is not None:
            place &= pc.field("__publishTime") <= pa.scalar(high, TIMESTAMP)
        if opened:
            place &= ~IS_CIPHERTEXT
        for batch in table.batches(self.rows.columns.names, place):
            yield conform(batch, self.rows.columns)  # a failure here is final
        if opened:
            yield from read_ciphertext(
                self.config,
                table,
                partition,
                self.rows,
                ledger_id,
                (self._first, split.last_entry),
                publish_range=self.publish_range,
            )


def _require_rows(table: TopicTable, split: Split, found: int, *, whole: bool) -> None:
    """Refuse to give fewer rows than were offloaded (row expiry may have removed some).

    ``whole``: nothing of the split's ledger was read before.
    """
    hint = "rows have expired since the query's snapshot: make the query anew"
    for one in table.ledgers():
        if (one.partition, one.ledger) != (split.partition.index, split.ledger_id):
            continue
        # The snapshot may have seen the ledger while it was open, and shorter.
        if whole and split.entries == one.entries:
            if found >= one.rows:
                return
            raise NotFoundError(
                f"the table has {found} of the {one.rows} rows of ledger {split.ledger_id} of "
                f"{split.partition}",
                hint=hint,
            )
    # Of a part nobody knows how many rows it had, nor of a ledger that the log has forgotten.
    if split.ledger_id <= table.expired(split.partition):
        raise NotFoundError(
            f"rows of ledger {split.ledger_id} of {split.partition} may have expired", hint=hint
        )
