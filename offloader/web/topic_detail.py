"""One topic in detail, from Pulsar's admin and the table. Runs in threads of ``query_cache``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from offloader.service.last_errors import Failure
from offloader.service.status import topic_status
from offloader.web.commits import CommitCache
from offloader.web.timeline import Block, merged, placed, segment_block
from reader.clients import Clients
from reader.model import Segment, Tier, Topic
from reader.plan.offloaded import ColdPart, offloaded_segments
from reader.plan.plan import plan_snapshot
from reader.plan.publish_times import PublishTimeStore
from reader.plan.snapshot import take_snapshot
from reader.table import LoggedCommit, OffloadedLedger, TopicTable
from reader.table.log import recorded_ledgers

__all__ = ["TopicDetail"]

_MOST_BLOCKS = 10_000
_MOST_COMMITS = 100
_LEDGER = "__ledgerId"


class TopicDetail:
    """Thread-safe. ``clock``: seconds since the epoch. ``failures``: of the daemon's topics."""

    def __init__(
        self,
        clients: Clients,
        subscription: str,
        failures: Callable[[], Mapping[str, Failure]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clients = clients
        self._subscription = subscription
        self._failures = failures
        self._clock = clock
        self._storage = clients.storage
        self._log = CommitCache(self._storage)

    def status(self, topic: Topic) -> dict[str, Any]:
        """As ``pulsar-lake status`` says it."""
        found = topic_status(
            self._clients,
            self._subscription,
            topic,
            clock_ms=int(self._clock() * 1000),
            failures=self._failures(),
        )
        return found.to_json()

    def commits(self, topic: Topic) -> list[dict[str, Any]]:
        """What the log says of its last commits that added ledgers, newest first."""
        table = TopicTable.open(self._storage, topic)
        logged = self._logged(table) if table else []
        rows = (_commit_row(one, ledgers) for one in logged if (ledgers := one.ledgers))
        return list(islice(rows, _MOST_COMMITS))

    def segments(self, topic: Topic) -> dict[str, Any]:
        """Every segment of the topic as blocks on a time axis.

        Raises NotFoundError where neither Pulsar nor the storage knows the topic.
        """
        snapshot = take_snapshot(self._clients, topic, checked=False)
        table = TopicTable.open(self._storage, topic, snapshot.version) if snapshot.uri else None
        settings = self._clients.settings
        plan = plan_snapshot(
            snapshot,
            learned=PublishTimeStore(settings.query, settings.pulsar, topic).known(),
            cold=ColdPart(self._recorded(table), ()) if table else None,
        )
        now = self._clock()
        found = {
            (one.segment.partition.index, one.segment.ledger_id): segment_block(one.segment)
            for one in plan.segments
            if one.segment.entries or one.segment.state in ("open", "lost")
        }
        files = _from_files(table, found) if table else []
        blocks = placed([*files, *found.values()], now)
        return {
            "topic": topic.local_name,
            "at": now,
            "version": table.version if table else None,
            "segments": [one.value() for one in merged(blocks, _MOST_BLOCKS)],
        }

    def _logged(self, table: TopicTable) -> list[LoggedCommit]:
        return self._log.newest(table.topic, table.version, table.id)

    def _recorded(self, table: TopicTable) -> tuple[Segment, ...]:
        return offloaded_segments(table, recorded_ledgers(self._logged(table)))


def _from_files(table: TopicTable, known: Mapping[tuple[int, int], Block]) -> list[Block]:
    """A block for each file of ledgers whose commits are no longer in the log, or not read."""
    oldest: dict[int, int] = {}
    for partition, ledger in known:
        oldest[partition] = min(ledger, oldest.get(partition, ledger))
    actions = table.files()
    names = ["min.__partition", f"min.{_LEDGER}", f"max.{_LEDGER}", "num_records", "size_bytes"]
    if not set(names) <= set(actions.schema.names):
        return []
    times = [_micros(actions, f"{end}.__publishTime") for end in ("min", "max")]
    columns: Sequence[Sequence[Any]] = [actions.column(name).to_pylist() for name in names]
    found = []
    for partition, first, last, rows, size, low, high in zip(*columns, *times, strict=True):
        if first is None or first >= oldest.get(partition, first + 1):
            continue
        last = min(last, oldest.get(partition, last + 1) - 1)
        found.append(
            Block(
                partition=partition,
                first=first,
                last=last,
                ledgers=1 if first == last else None,
                state="offloaded",
                tier=Tier.PARQUET,
                reason="a file of the table; its commit is no longer in the log",
                entries=0,
                rows=rows,
                bytes=size,
                published_from=None if low is None else low / 1e6,
                published_to=None if high is None else high / 1e6,
                closed_at=None,
            )
        )
    return found


def _micros(actions: pa.Table, name: str) -> list[int | None]:
    if name not in actions.schema.names:
        return [None] * actions.num_rows
    column = pc.cast(actions.column(name), pa.timestamp("us", tz="UTC"))
    found: list[int | None] = column.cast(pa.int64()).to_pylist()
    return found


def _commit_row(one: LoggedCommit, ledgers: Sequence[OffloadedLedger]) -> dict[str, Any]:
    return {
        "version": one.version,
        "at": one.at_ms / 1000,
        "ledgers": len(ledgers),
        "rows": sum(ledger.rows for ledger in ledgers),
        "stored": sum(ledger.bytes for ledger in ledgers),
        "read_from": sorted({ledger.tier for ledger in ledgers if not ledger.lost}),
    }
