"""One topic in detail, from Pulsar's admin and the table. Runs in threads of ``query_cache``."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from offloader.model import TopicBacklog
from offloader.service import LastError, TopicStatus, topic_status
from offloader.web.commits import CommitCache
from offloader.web.timeline import file_block, merged, placed, segment_block
from reader import plan as plans
from reader.clients import Clients
from reader.model import Topic
from reader.table import LoggedCommit, OffloadedLedger, TopicTable

_MOST_BLOCKS = 10_000
_MOST_COMMITS = 100


class TopicDetail:
    """Thread-safe. ``clock``: seconds since the epoch. ``elapsed``: seconds of a monotonic clock,
    the scheduler's. ``failures``: of the daemon's topics.

    ``looked`` is told what was found not to be in a table, so that nobody knows it otherwise.
    """

    def __init__(
        self,
        clients: Clients,
        subscription: str,
        failures: Callable[[], Mapping[str, LastError]],
        looked: Callable[[Topic, TopicBacklog], None],
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients = clients
        self._subscription = subscription
        self._failures = failures
        self._looked = looked
        self._clock = clock
        self._elapsed = elapsed
        self._storage = clients.storage
        self._log = CommitCache(self._storage)

    def look(self, topic: Topic) -> TopicStatus:
        """As ``pulsar-lake status`` has it; its backlog is known to all from now on."""
        found = topic_status(
            self._clients,
            self._subscription,
            topic,
            clock_ms=int(self._clock() * 1000),
            failures=self._failures(),
            elapsed=self._elapsed,
        )
        if found.backlog is not None:
            self._looked(topic, found.backlog)
        return found

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
        snapshot = plans.take_snapshot(self._clients, topic, checked=False)
        table = TopicTable.open(self._storage, topic, snapshot.version) if snapshot.uri else None
        settings = self._clients.settings
        cold = plans.logged_part(table, self._logged(table)) if table else None
        plan = plans.plan_snapshot(
            snapshot,
            known=plans.Known(
                plans.PublishTimeStore(settings.query, settings.pulsar, topic).known(snapshot.hot),
                cold,
            ),
        )
        now = self._clock()
        segments = [
            one.segment
            for one in plan.segments
            if one.segment.entries or one.segment.state != "offloaded"
        ]
        older = plans.older_ledgers(table, cold.files, segments) if table and cold else []
        blocks = placed([*map(file_block, older), *map(segment_block, segments)], now)
        return {
            "topic": topic.local_name,
            "at": now,
            "version": table.version if table else None,
            "segments": [one.value() for one in merged(blocks, _MOST_BLOCKS)],
        }

    def _logged(self, table: TopicTable) -> list[LoggedCommit]:
        return self._log.newest(table.topic, table.version, table.id)


def _commit_row(one: LoggedCommit, ledgers: Sequence[OffloadedLedger]) -> dict[str, Any]:
    return {
        "version": one.version,
        "at": one.at_ms / 1000,
        "ledgers": len(ledgers),
        "rows": sum(ledger.rows for ledger in ledgers),
        "stored": sum(ledger.bytes for ledger in ledgers),
        "read_from": sorted({ledger.tier for ledger in ledgers if not ledger.lost}),
    }
