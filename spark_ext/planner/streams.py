"""Streams of topics, for the shim: how far a batch goes, and what its halves read.

A stream is named by its options; what is kept of it between two questions (lists of ledgers, the
table, subscriptions) is found again by a planner that was started anew.
"""

import json
import sys
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from reader.clients import Clients
from reader.model import Tier
from reader.plan import AllOf, AnyOf, Filter, Predicate, Unequal
from reader.stream import StreamOffset, StreamOptions, Tails, TopicBatch, TopicStream
from spark_ext.ddl import columns_ddl
from spark_ext.planner.cold_tables import NOT_ENCRYPTED, ColdTables
from spark_ext.planner.column_changes import require_columns
from spark_ext.planner.predicates import expression_of
from spark_ext.planner.protocol import (
    BatchFiles,
    BatchPlan,
    BatchTier,
    ColdPlan,
    ColdRead,
    FindNextBatch,
    HotRead,
    MeasureStream,
    MicroBatch,
    NextBatch,
    PlanBatch,
    Stream,
    StreamBounds,
    StreamColumns,
    StreamEnd,
    StreamMetrics,
    TaskPlan,
)

_KEPT_STREAMS = 256
_KEPT_PLANS = 16
"""Of all streams: each has at most two that are needed, the one that runs and the one after it."""


class Streams:
    """Streams of topics. Thread-safe. ``clients_of``: those of a configuration."""

    def __init__(self, clients_of: Callable[[str | None], Clients], cold: ColdTables) -> None:
        self._clients_of = clients_of
        self._cold = cold
        self._lock = Lock()
        self._streams: OrderedDict[tuple[object, ...], TopicStream] = OrderedDict()
        self._tails: dict[int, Tails] = {}
        self._plans: OrderedDict[str, Sequence[TopicBatch]] = OrderedDict()

    def describe(self, config: str | None, stream: Stream) -> StreamColumns:
        """Return the columns of a stream."""
        return StreamColumns(columns_ddl(self._stream(config, stream).columns()))

    def bounds(self, config: str | None, stream: Stream) -> StreamBounds:
        """Return where the first batch begins, and the last one ends."""
        start, ending = self._stream(config, stream).bounds()
        return StreamBounds(start.to_json(), ending.to_json() if ending else None)

    def end(self, config: str | None, stream: Stream) -> StreamEnd:
        """Return where Trigger.AvailableNow ends."""
        return StreamEnd(self._stream(config, stream).end().to_json())

    def next(self, config: str | None, question: FindNextBatch) -> NextBatch:
        """Return how far the next batch goes, what lies in it, and how far it could go."""
        found, latest = self._stream(config, question.stream).next(
            StreamOffset.from_json(question.start),
            waited=question.waited,
            ending=_offset(question.ending),
            until=_offset(question.until),
        )
        end, plan = found.to_json(), None
        if end != question.start:
            begins = question.start, end, question.began
            plan = self.plan(config, PlanBatch(question.stream, *begins, question.columns))
        return NextBatch(end, latest.to_json(), plan)

    def plan(self, config: str | None, question: PlanBatch) -> BatchPlan:
        """Plan a micro-batch: its parts and tiers, at least one of them.

        hot: what tasks read, entries of the table that they decrypt included
        """
        stream = self._stream(config, question.stream)
        began = StreamOffset.from_json(question.began).partitions
        parts = {"whole": 0, "cut": 0, "late": 0}
        hot: dict[str, int] = {}
        wheres: list[Filter] = []
        late: list[Filter] = []
        known: list[Filter] = []
        encrypted = False
        snapshots, batches = stream.plan(*_range(question.start, question.end))
        for one in batches:
            require_columns(one.snapshot, question.columns)
            for part, files in one.files().items():
                parts[part] += sum(max(1, file.bytes) for file in files)
            wheres.append(_of_topic(one, one.inside))
            late.append(_of_topic(one, one.late_filter(began)))
            if (kept := one.unless_given_up_later()) is not None:
                known.append(AnyOf((_of_another_topic(one), kept)))
            sealed = one.snapshot.ciphertext
            decrypts = sealed is not None and any(map(one.has_cold_rows_of, sealed.partitions))
            encrypted |= sealed is not None
            for split in one.plan.splits:
                hot[split.tier] = hot.get(split.tier, 0) + split.bytes
            if decrypts:
                hot.setdefault(Tier.PARQUET, 0)
        # Hot tasks decrypt what the files have as ciphertext.
        known += [NOT_ENCRYPTED] if encrypted else []
        filters: dict[str, Filter] = {
            "whole": AllOf(tuple(known)),
            "cut": AllOf((AnyOf(tuple(wheres)), *known)),
            "late": AnyOf(tuple(late)),
        }
        found = tuple(
            BatchFiles(part, size, expression_of(filters[part]))
            for part, size in parts.items()
            if size
        )
        if not found and not hot:
            hot = {Tier.BOOKKEEPER: 0}
        number = uuid.uuid4().hex  # which no other planner gives
        self._keep(number, batches)
        batch = MicroBatch(question.stream, question.start, question.end, number, snapshots)
        tiers = tuple(BatchTier(tier, size) for tier, size in hot.items())
        return BatchPlan(stream.name, batch, found, tiers)

    def cold_plan(self, config: str | None, batch: MicroBatch, read: ColdRead) -> ColdPlan:
        """Return the files of one part of a micro-batch that a query's filters leave."""
        clients = self._clients_of(config)
        found: list[ColdPlan] = []
        for one in self._planned(config, batch):
            table = one.snapshot.table
            if table is None:
                continue
            if paths := {file.path for file in one.files()[read.name]}:
                found.append(self._cold.files_of(clients, table, read.filters, paths))
        tables = tuple(table for plan in found for table in plan.tables)
        return ColdPlan(None, tables, sum(plan.bytes for plan in found))

    def hot_scan(
        self, config: str | None, batch: MicroBatch, read: HotRead, parallelism: int
    ) -> TaskPlan:
        """Return the tasks of a micro-batch's hot rows that come from one tier."""
        from spark_ext.planner.scans import tier_scan  # pyspark is loaded when first needed

        batches = self._planned(config, batch)
        return tier_scan(self._clients_of(config), batches, read, parallelism)

    def metrics(self, config: str | None, question: MeasureStream) -> StreamMetrics:
        """Return messages and bytes behind, and the greatest age; of each partition as JSON."""
        if question.at is None or question.latest is None:
            return StreamMetrics({})
        stream = self._stream(config, question.stream)
        stream.show(StreamOffset.from_json(question.at))
        lags = stream.lag(*_range(question.at, question.latest))
        ages = [one.seconds for one in lags.values() if one.seconds is not None]
        partitions = {
            str(partition): [one.messages, one.bytes, one.seconds]
            for partition, one in sorted(lags.items())
            if one.messages or one.bytes
        }
        return StreamMetrics(
            {
                "messagesBehind": str(sum(one.messages for one in lags.values())),
                "bytesBehind": str(sum(one.bytes for one in lags.values())),
                "secondsBehind": f"{max(ages, default=0.0):.1f}",
                "partitions": json.dumps(partitions),
            }
        )

    def _keep(self, number: str, batches: Sequence[TopicBatch]) -> None:
        with self._lock:
            self._plans[number] = batches
            while len(self._plans) > _KEPT_PLANS:
                self._plans.popitem(last=False)

    def _planned(self, config: str | None, batch: MicroBatch) -> Sequence[TopicBatch]:
        """Return the plan of a micro-batch: the very same, or one of the same snapshots."""
        with self._lock:
            known = self._plans.get(batch.plan)
        if known is not None:
            return known
        stream = self._stream(config, batch.stream)
        found = stream.batch(*_range(batch.start, batch.end), batch.snapshots)
        self._keep(batch.plan, found)
        return found

    def _stream(self, config: str | None, stream: Stream) -> TopicStream:
        clients = self._clients_of(config)
        # What two queries with the same options wait for and have read is not the same.
        key = (config, *sorted(stream.options.items()), stream.place)
        with self._lock:
            found = self._streams.pop(key, None)
            if found is None:
                tails = self._tails.setdefault(id(clients), Tails(clients))
                wanted = StreamOptions.of(stream.options)
                found = TopicStream(clients, wanted, tails, warn=_warn)
            self._streams[key] = found
            while len(self._streams) > _KEPT_STREAMS:
                self._streams.popitem(last=False)
            return found


def _offset(text: str | None) -> StreamOffset | None:
    return None if text is None else StreamOffset.from_json(text)


def _range(start: str, end: str) -> tuple[StreamOffset, StreamOffset]:
    return StreamOffset.from_json(start), StreamOffset.from_json(end)


def _of_topic(batch: TopicBatch, where: Filter) -> Filter:
    return AllOf((Predicate("__topic", "=", (batch.snapshot.topic.full_name,)), where))


def _of_another_topic(batch: TopicBatch) -> Filter:
    return Unequal("__topic", batch.snapshot.topic.full_name)


def _warn(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # which is Spark's log
    sys.stderr.flush()
