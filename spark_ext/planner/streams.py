"""Streams of topics, for the shim: how far a batch goes, and what its halves read.

A stream is named by its options; what is kept of it between two questions (lists of ledgers, the
table, subscriptions) is found again by a planner that was started anew.
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from reader.clients import Clients
from reader.model import Tier
from reader.model.columns import CIPHERTEXT_SQL
from reader.stream import (
    StreamOffset,
    StreamOptions,
    Tails,
    TopicBatch,
    TopicStream,
    position_filter,
)
from spark_ext.ddl import columns_ddl, string_literal
from spark_ext.planner.cold_tables import ColdTables
from spark_ext.planner.column_changes import require_columns

__all__ = ["Streams"]

Query = tuple[str | None, str, str]
"""Of one stream: its configuration, its options, and its place in the checkpoint ("": there is no
query yet). What two queries with the same options wait for and have read is not the same."""
_KEPT_STREAMS = 256


class Streams:
    """Answers the shim's questions about streams. Thread-safe. ``clients_of``: those of a
    configuration."""

    def __init__(self, clients_of: Callable[[str | None], Clients], cold: ColdTables) -> None:
        self._clients_of = clients_of
        self._cold = cold
        self._lock = Lock()
        self._streams: OrderedDict[Query, TopicStream] = OrderedDict()
        self._tails: dict[int, Tails] = {}

    def columns(self, query: Query) -> dict[str, Any]:
        """{schema}: as DDL."""
        return {"schema": columns_ddl(self._stream(query).columns())}

    def bounds(self, query: Query) -> dict[str, str | None]:
        """{start, ending}: where the first batch begins, and the last one ends (null: never)."""
        start, ending = self._stream(query).bounds()
        return {"start": start.to_json(), "ending": ending.to_json() if ending else None}

    def end(self, query: Query) -> dict[str, str]:
        """{latest}: where Trigger.AvailableNow ends."""
        return {"latest": self._stream(query).end().to_json()}

    def next(
        self, query: Query, start: str, ending: str | None, until: str | None, waited: float
    ) -> dict[str, str]:
        """{next, latest}: how far the next batch goes, and how far it could. ``waited``: seconds
        since the last one was begun."""
        found, latest = self._stream(query).next(
            StreamOffset.from_json(start),
            waited=waited,
            ending=None if ending is None else StreamOffset.from_json(ending),
            until=None if until is None else StreamOffset.from_json(until),
        )
        return {"next": found.to_json(), "latest": latest.to_json()}

    def batch(self, query: Query, start: str, end: str, began: str, columns: str) -> dict[str, Any]:
        """{name, snapshots, files: [{part, bytes, where}], hot: {tier: bytes}}: one of them at
        least. ``began``: where the stream begins. ``snapshots``: what ``files`` and ``plan`` are to
        be asked with. ``hot``: what tasks read, entries of the table that they decrypt included.
        """
        stream = self._stream(query)
        parts = {"whole": 0, "cut": 0, "late": 0}
        hot: dict[str, int] = {}
        wheres: list[str] = []
        late: list[str] = []
        known: list[str] = []
        encrypted = False
        token, batches = stream.plan(*_range(start, end))
        for one in batches:
            require_columns(one.snapshot, columns)
            plan = one.plan(self._clients_of(query[0]))
            for file in plan.cold:
                if file.read:
                    parts["whole" if one.has_all_of(file.file) else "cut"] += max(
                        1, file.file.bytes
                    )
            parts["late"] += sum(max(1, file.bytes) for file in one.late_files())
            wheres.append(_of_topic(one, position_filter(one.ranges)))
            late.append(_of_topic(one, one.late_filter(StreamOffset.from_json(began).partitions)))
            known += [_if_of_topic(one, where)] if (where := one.unless_given_up_later()) else []
            sealed = one.snapshot.ciphertext
            decrypts = sealed is not None and any(map(one.has_cold_rows_of, sealed.partitions))
            encrypted |= sealed is not None
            for split in plan.splits:
                hot[split.tier] = hot.get(split.tier, 0) + split.bytes
            if decrypts:
                hot.setdefault(Tier.PARQUET, 0)
        # Hot tasks decrypt what the files have as ciphertext.
        known += [f"NOT {CIPHERTEXT_SQL}"] if encrypted else []
        filters = {
            "whole": " AND ".join(known),
            "cut": " AND ".join([f"({' OR '.join(wheres)})", *known]),
            "late": " OR ".join(late),
        }
        return {
            "name": stream.name,
            "snapshots": token,
            "files": [
                {"part": part, "bytes": size, "where": filters[part]}
                for part, size in parts.items()
                if size
            ],
            "hot": hot or ({} if any(parts.values()) else {Tier.BOOKKEEPER: 0}),
        }

    def files(
        self,
        query: Query,
        start: str,
        end: str,
        snapshots: str,
        part: str,
        predicates: str,
    ) -> dict[str, Any]:
        """As ``ColdTables.files``: those of one part of a batch that ``predicates`` leave."""
        stream, clients = self._stream(query), self._clients_of(query[0])
        answers = []
        for one in stream.batch(*_range(start, end), snapshots):
            table = one.snapshot.table
            if table is None:
                continue
            paths = (
                {file.path for file in one.late_files()}
                if part == "late"
                else {
                    file.file.path
                    for file in one.plan(clients).cold
                    if file.read and one.has_all_of(file.file) == (part == "whole")
                }
            )
            if paths:
                answers.append(self._cold.files_of(clients, table, predicates, paths))
        return _together(answers)

    def plan(
        self,
        query: Query,
        start: str,
        end: str,
        snapshots: str,
        tier: str,
        columns: str,
        predicates: str,
        parallelism: int,
    ) -> dict[str, Any]:
        """As ``Relations.plan``: the tasks of a batch's hot rows that come from one tier."""
        from spark_ext.datasource.tasks import pickled_tasks  # pyspark is loaded when first needed

        stream, clients = self._stream(query), self._clients_of(query[0])
        batches = stream.batch(*_range(start, end), snapshots)
        return pickled_tasks(clients, batches, Tier(tier), columns, predicates, parallelism)

    def metrics(self, query: Query, at: str | None, latest: str | None) -> dict[str, str]:
        """Messages and bytes behind, and the greatest age; of each partition as JSON."""
        if at is None or latest is None:
            return {}
        stream = self._stream(query)
        stream.show(StreamOffset.from_json(at))
        lags = stream.lag(*_range(at, latest))
        ages = [one.seconds for one in lags.values() if one.seconds is not None]
        return {
            "messagesBehind": str(sum(one.messages for one in lags.values())),
            "bytesBehind": str(sum(one.bytes for one in lags.values())),
            "secondsBehind": f"{max(ages, default=0.0):.1f}",
            "partitions": json.dumps(
                {
                    str(partition): [one.messages, one.bytes, one.seconds]
                    for partition, one in sorted(lags.items())
                    if one.messages or one.bytes
                }
            ),
        }

    def _stream(self, query: Query) -> TopicStream:
        clients = self._clients_of(query[0])
        with self._lock:
            found = self._streams.pop(query, None)
            if found is None:
                tails = self._tails.setdefault(id(clients), Tails(clients))
                wanted = StreamOptions.of(json.loads(query[1]))
                found = TopicStream(clients, wanted, tails, warn=_warn)
            self._streams[query] = found
            while len(self._streams) > _KEPT_STREAMS:
                self._streams.popitem(last=False)
            return found


def _range(start: str, end: str) -> tuple[StreamOffset, StreamOffset]:
    return StreamOffset.from_json(start), StreamOffset.from_json(end)


def _of_topic(batch: TopicBatch, where: str) -> str:
    return f"(__topic = {string_literal(batch.snapshot.topic.full_name)} AND ({where}))"


def _if_of_topic(batch: TopicBatch, where: str) -> str:
    return f"(__topic <> {string_literal(batch.snapshot.topic.full_name)} OR {where})"


def _together(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Of several tables: ``roots`` has that of each path."""
    if len(answers) == 1:
        return answers[0]
    lists = ("paths", "sizes", "times")
    return {
        "root": answers[0]["root"] if answers else "/",
        "roots": [one["root"] for one in answers for _ in one["paths"]],
        **{name: [value for one in answers for value in one[name]] for name in lists},
        "rows": None,
        "bytes": sum(one["bytes"] for one in answers),
    }


def _warn(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # which is Spark's log
    sys.stderr.flush()
