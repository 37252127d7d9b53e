"""Backlogs as turns find them, of sizes that a test says."""

from collections.abc import Mapping

from offloader.model import Backlog, TopicBacklog
from reader.model import Partition


def backlog_of(
    sealed: Mapping[str, int] | None = None,
    unsealed: Mapping[str, int] | None = None,
    oldest: float | None = None,
    *,
    ledgers: int = 0,
    at: float = 0.0,
) -> TopicBacklog:
    """Bytes by full name of a partition. ``oldest``, ``at``: seconds since the epoch.

    All ``ledgers``, and the oldest, are the first partition's.
    """
    sealed, unsealed = sealed or {}, unsealed or {}
    found = []
    for number, name in enumerate(dict.fromkeys((*sealed, *unsealed))):
        closed = None if oldest is None or number else int(oldest * 1000)
        found.append(
            Backlog(
                partition=Partition.parse(name),
                watermark=-1,
                hold=None,
                ledgers=0 if number else ledgers,
                sealed=sealed.get(name, 0),
                unsealed=unsealed.get(name, 0),
                oldest_ms=closed,
                closed_ms=closed,
            )
        )
    return TopicBacklog(at=at, asked=at, read=at, version=None, partitions=tuple(found))
