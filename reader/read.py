"""A split to Arrow batches, from whichever tier can give it.

    bookkeeper ── bookies silent, entries not handled ──▶ broker
    bookkeeper, broker ── ledger left BookKeeper ───────▶ the newest table

Each step down goes on after the last entry delivered, so no row is missed or doubled.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from reader.admin import AdminClient
from reader.bookkeeper import BookKeeperClient
from reader.broker import read_broker
from reader.columns import TIMESTAMP
from reader.config import Config
from reader.decode import EntryDecoder
from reader.errors import CorruptError, NotFoundError, UnavailableError, UnsupportedError
from reader.model import LedgerMetadata, Position, Tier
from reader.ranges import KnownRange, RangeStore
from reader.rows import RowBuilder, RowFormat
from reader.splits import Split
from reader.table import TopicTable

__all__ = ["read_split"]

PublishRange = tuple[int | None, int | None]
# A batch of rows, or the id of the entry up to which all rows have been given.
_Steps = Iterator[pa.RecordBatch | int]


def read_split(
    config: Config,
    split: Split,
    rows: RowFormat,
    *,
    publish_range: PublishRange = (None, None),
    fall_back: bool = True,
) -> Iterator[pa.RecordBatch]:
    """The split's rows in order; batches have exactly ``rows.columns``.

    ``publish_range`` (µs, inclusive) drops whole entries early; the caller still filters.
    ``fall_back=False`` keeps to the split's tier, for offloading: a row must not lose columns
    because a bookie was slow.
    """
    tier: Tier = split.tier
    ledger = split.metadata
    position = split.first_entry
    while True:
        try:
            for step in _read(config, split, ledger, tier, position, rows, publish_range):
                if isinstance(step, int):
                    position = step + 1
                elif step.num_rows:
                    yield step
            return
        except (NotFoundError, CorruptError, UnavailableError, UnsupportedError) as error:
            if tier == "parquet":
                raise
            tier, ledger = _next_tier(config, split, tier, ledger, error, fall_back)


def _next_tier(
    config: Config,
    split: Split,
    tier: Tier,
    ledger: LedgerMetadata | None,
    error: Exception,
    fall_back: bool,
) -> tuple[Tier, LedgerMetadata | None]:
    """Where to go on after ``error``, or raise it."""
    if tier == "bookkeeper" and isinstance(error, UnsupportedError):
        if fall_back:
            return "broker", ledger
        raise error
    with AdminClient(config.pulsar) as admin:
        try:
            listed = {one.ledger_id: one for one in admin.ledgers(split.partition).ledgers}
        except NotFoundError:
            listed = {}  # the topic was deleted
    found = listed.get(split.ledger_id)
    if found is None:
        if fall_back:
            return "parquet", None
        raise error
    if tier == "bookkeeper" and found.metadata is not None and found.metadata != ledger:
        return "bookkeeper", found.metadata  # its ensembles changed since the plan
    if tier == "bookkeeper" and fall_back and not isinstance(error, CorruptError):
        return "broker", ledger
    raise error


def _read(
    config: Config,
    split: Split,
    ledger: LedgerMetadata | None,
    tier: Tier,
    first: int,
    rows: RowFormat,
    publish_range: PublishRange,
) -> _Steps:
    if first > split.last_entry:
        return iter(())
    if tier == "parquet":
        return _from_table(config, split, first, rows, publish_range)
    if tier == "broker":
        return _from_broker(config, split, first, rows, publish_range)
    if ledger is None:
        raise NotFoundError(f"Pulsar no longer lists ledger {split.ledger_id}")
    return _from_bookkeeper(config, split, ledger, first, rows, publish_range)


def _from_bookkeeper(
    config: Config,
    split: Split,
    ledger: LedgerMetadata,
    first: int,
    rows: RowFormat,
    publish_range: PublishRange,
) -> _Steps:
    decoder = EntryDecoder(
        split.partition,
        columns=rows.metadata_columns,
        payload=rows.needs_payload,
        publish_range=publish_range,
    )
    builder = RowBuilder(split.partition, rows)
    pulsar = config.pulsar
    with BookKeeperClient(
        addresses=pulsar.bookies,
        timeout=pulsar.bookie_timeout.total_seconds(),
        password=pulsar.bookkeeper_password.get_secret_value().encode(),
    ) as bookies:
        for block in bookies.read(ledger, first, split.last_entry):
            # The decoder raises, if at all, before it gives a block's first messages.
            for messages in decoder.decode(block):
                yield builder.build(messages)
            yield int(block.entry_ids[-1])
    if split.state == "sealed" and first == split.first_entry:
        _learn(config, split, decoder)


def _learn(config: Config, split: Split, decoder: EntryDecoder) -> None:
    low, high = decoder.publish_times_seen
    RangeStore(config, split.partition.topic).learn(
        KnownRange(
            partition=split.partition.index,
            ledger=split.ledger_id,
            first=split.first_entry,
            last=split.last_entry,
            messages=decoder.messages_seen,
            low=low,
            high=high,
        )
    )


def _from_broker(
    config: Config, split: Split, first: int, rows: RowFormat, publish_range: PublishRange
) -> _Steps:
    builder = RowBuilder(split.partition, rows)
    for last, messages in read_broker(
        config.pulsar,
        split.partition,
        Position(split.ledger_id, first),
        Position(split.ledger_id, split.last_entry),
        columns=rows.metadata_columns,
        publish_range=publish_range,
    ):
        yield builder.build(messages)
        yield last


def _from_table(
    config: Config, split: Split, first: int, rows: RowFormat, publish_range: PublishRange
) -> _Steps:
    """A ledger that left BookKeeper since the snapshot, from the newest table version.

    Raises NotFoundError where the table does not have it, or not all of it.
    """
    ledger_id, partition = split.ledger_id, split.partition
    table = TopicTable.open(config.storage, partition.topic)
    if table is None or table.watermark(partition) < ledger_id:
        raise NotFoundError(
            f"ledger {ledger_id} of {partition} has left BookKeeper and is not in the table",
            hint="its messages were deleted before they were offloaded: retention, TTL or backlog",
        )
    place = (
        (pc.field("__partition") == partition.index)
        & (pc.field("__ledgerId") == ledger_id)
        & (pc.field("__entryId") >= first)
        & (pc.field("__entryId") <= split.last_entry)
    )
    _require_rows(table, split, table.dataset().count_rows(filter=place))
    low, high = publish_range
    if low is not None:
        place &= pc.field("__publishTime") >= pa.scalar(low, TIMESTAMP)
    if high is not None:
        place &= pc.field("__publishTime") <= pa.scalar(high, TIMESTAMP)
    for batch in table.batches(rows.columns.names, place):
        yield _conform(batch, rows.columns)  # a failure here is final: nothing to resume


def _require_rows(table: TopicTable, split: Split, found: int) -> None:
    """Refuse to give fewer rows than were offloaded (row expiry may have removed some)."""
    for one in table.ledgers():
        if (one.partition, one.ledger) != (split.partition.index, split.ledger_id):
            continue
        # The snapshot may have seen the ledger while it was open, and shorter.
        if split.whole and split.entries == one.entries and found < one.rows:
            raise NotFoundError(
                f"the table has {found} of the {one.rows} rows of ledger {split.ledger_id} of "
                f"{split.partition}",
                hint="rows have expired since the query's snapshot: make the query anew",
            )


def _conform(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    if not columns.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    arrays = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
