"""A topic followed by streams in small batches, read as Spark's tasks read them, without Spark.

What a stream has read once it reads again each time: from its own offsets, which know no tier.
"""

import json
import pickle
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from reader.clients import Clients
from reader.config import ReadConfig
from reader.model import Partition, Position, Tier, Topic
from reader.model.columns import rows_between
from reader.plan import FilesRead, list_ledgers
from reader.sources import RowFormat, read_rows
from reader.stream import StreamOffset, StreamOptions, Tails, TopicBatch, TopicStream
from spark_ext.planner.protocol import HotRead
from spark_ext.planner.scans import tier_scan
from tests.contract.rows import KEY_COLUMNS, Key, key_of

_CUTS = 2
"""In how many places what is new is cut."""

Batch = tuple[StreamOffset, StreamOffset]


@dataclass
class _Followed:
    """``read``: which rows each batch has given, the first time."""

    stream: TopicStream
    at: StreamOffset
    read: list[tuple[Batch, list[Key]]] = field(default_factory=list)


class Follower:
    """Follows topics by the same settings. ``clients`` are opened when first needed."""

    def __init__(self, settings: ReadConfig) -> None:
        self._clients = Clients(settings)
        self._tails = Tails(self._clients)
        self._topics: dict[Topic, _Followed] = {}

    def close(self) -> None:
        self._tails.close()
        self._clients.close()

    def rows(self, name: str) -> pa.Table:
        """All rows up to now of the one stream that has followed the topic from its beginning.

        What is new since the last call is cut at any entries, inside of chunked messages and
        transactions, too. Earlier batches must give the rows that they gave before.
        """
        topic = Topic.parse(name)
        known = self._topics.get(topic)
        if known is None:
            stream = self._stream(topic)
            known = self._topics[topic] = _Followed(stream, stream.bounds()[0])
        found: list[pa.Table] = []
        for batch, keys in known.read:
            rows = self._read(known.stream, batch)
            assert _keys(rows) == keys, ("not what the batch gave before", batch)
            found.append(rows)
        for end in self._cut(known.at, known.stream.end()):
            batch = known.at, end
            rows = self._read(known.stream, batch)
            known.read.append((batch, _keys(rows)))
            known.at = end
            found.append(rows)
        return _together(found)

    def limited(self, name: str, most: int) -> pa.Table:
        """All rows up to now of a new stream, with ``most`` in a batch."""
        stream = self._stream(Topic.parse(name), max_messages=most)
        at, until, found = stream.bounds()[0], stream.end(), list[pa.Table]()
        while True:
            end, _ = stream.next(at, until=until)
            if end == at:
                return _together(found)
            rows = self._read(stream, (at, end))
            entries = {key[:3] for key in _keys(rows)}
            assert len(rows) <= most or len(entries) == 1, "more than the limit"
            found.append(rows)
            at = end

    def _stream(self, topic: Topic, **options: Any) -> TopicStream:
        def fail(loss: str) -> None:
            raise AssertionError(loss)

        wanted = StreamOptions(topics=(topic,), **options)
        return TopicStream(self._clients, wanted, self._tails, warn=fail)

    def _cut(self, start: StreamOffset, end: StreamOffset) -> Iterator[StreamOffset]:
        """Offsets up to ``end`` that fall behind any entries, of each partition others."""
        partitions = [one for one, to in end.partitions.items() if to.at > start.of(one).at]
        if not partitions:
            return
        listed = list_ledgers(self._clients.admin, partitions, transactions=False)
        places: dict[Partition, list[Position]] = {}
        for one in partitions:
            first, last = start.of(one).at, end.of(one).at
            entries = [
                Position(ledger.ledger_id, entry)
                for ledger in listed[one].ledgers
                for entry in range(ledger.entries or last.entry + 1)
                if first < Position(ledger.ledger_id, entry) < last
            ]
            chance = random.Random(f"{one.index} {len(entries)}")
            places[one] = sorted(chance.sample(entries, min(_CUTS, len(entries))))
        for number in range(max(map(len, places.values()))):
            found = dict(end.partitions)
            for one, to in end.partitions.items():
                behind = places.get(one, [])[: number + 1]
                at = behind[-1] if behind else start.of(one).at
                found[one] = replace(to, at=at)
            yield StreamOffset(found)
        yield end

    def _read(self, stream: TopicStream, batch: Batch) -> pa.Table:
        found: list[pa.Table] = []
        for part in stream.plan(*batch)[1]:
            batches = [*self._cold(part), *self._hot(part)]
            found.append(pa.Table.from_batches(batches, part.snapshot.columns))
        return _together(found)

    def _cold(self, batch: TopicBatch) -> Iterator[pa.RecordBatch]:
        """As Spark's scan of files: filtered by position where a file is cut."""
        columns, topic = batch.snapshot.columns, batch.snapshot.topic
        inside = pc.scalar(False)
        for index, (first, last) in batch.ranges.items():
            inside |= rows_between(index, first, last)
        form = RowFormat(batch.snapshot.fields, (), columns)
        for one in batch.plan.cold:
            if one.read:
                encrypted = batch.snapshot.ciphertext is not None
                read = FilesRead(topic, batch.snapshot.version, (one.file,), encrypted)
                for rows in read_rows(self._clients, read, form):
                    yield rows if batch.has_all_of(one.file) else rows.filter(inside)

    def _hot(self, batch: TopicBatch) -> Iterator[pa.RecordBatch]:
        """What Spark's Python workers do with the batch's tasks."""
        columns = json.dumps(from_arrow_schema(batch.snapshot.columns).jsonValue())
        planned = {one.segment.tier for one in batch.plan.segments}
        if batch.snapshot.ciphertext is not None:
            planned.add(Tier.PARQUET)
        for tier in planned:
            read = HotRead("", tier, None, columns, ())
            plan = tier_scan(self._clients, [batch], read, parallelism=1)
            function, _ = pickle.loads(plan.function.function)
            tasks = [pa.array([one]) for one in plan.tasks]
            yield from function(iter([pa.record_batch([one], ["task"]) for one in tasks]))


def _together(tables: list[pa.Table]) -> pa.Table:
    """Later batches may have more columns; a stream that has read nothing has none."""
    return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})


def _keys(rows: pa.Table) -> list[Key]:
    """Return the keys of all rows, sorted."""
    return sorted(map(key_of, rows.select(KEY_COLUMNS).to_pylist())) if len(rows) else []
