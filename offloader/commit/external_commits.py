"""Commits that are not ours, found in the log and named: RESTORE, DELETE, a stranger's OPTIMIZE.

Only this offloader may commit to its tables. Every commit of ours carries an id
(``commit.COMMIT_KEY``); one without is somebody else's. A RESTORE takes rows out and leaves the
watermarks where they are, so nobody would offload them again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from offloader.commit.append import COMMIT_KEY
from reader.model import Topic
from reader.storage import Storage
from reader.table import TopicTable
from reader.table.log import info_of, read_commit

__all__ = ["Foreign", "ForeignWatch", "foreign_commits"]


@dataclass(frozen=True, slots=True)
class Foreign:
    """One commit of somebody else. ``at_ms``: ms since the epoch; ``touches_files``: it added or
    removed some, so rows may be others."""

    version: int
    operation: str
    engine: str
    at_ms: int
    touches_files: bool

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.at_ms / 1000, UTC)
        return (
            f"version {self.version} of the table ({at:%Y-%m-%d %H:%M:%S}Z) is not ours: "
            f"{self.operation} by {self.engine}{self._consequence()}"
        )

    def _consequence(self) -> str:
        before = self.version - 1
        if self.operation == "RESTORE":
            return (
                "; rows that it took out are not offloaded again, and are deleted after "
                f"offload.vacuum_after: a RESTORE to version {before} takes them back, if nothing "
                "was offloaded since"
            )
        if self.operation == "OPTIMIZE":
            return (
                "; its files may have statistics of floats, by which readers skip NaN: "
                f"a RESTORE to version {before} undoes it, if nothing was offloaded since"
            )
        if self.touches_files:
            return "; rows may be missing, changed or added: only the offloader may commit here"
        return "; only the offloader may commit here"


def foreign_commits(storage: Storage, topic: Topic, versions: Iterable[int]) -> list[Foreign]:
    """Those among ``versions`` that are not ours, and not cleaned up. Raises UnavailableError."""
    found = ((version, read_commit(storage, topic, version)) for version in versions)
    return [
        _foreign(version, actions)
        for version, actions in found
        if actions is not None and COMMIT_KEY not in info_of(actions)
    ]


def _foreign(version: int, actions: list[dict[str, object]]) -> Foreign:
    info = info_of(actions)
    return Foreign(
        version=version,
        operation=str(info.get("operation", "a commit without a name")),
        engine=str(info.get("engineInfo", "somebody")),
        at_ms=int(info.get("timestamp", 0)),
        touches_files=any("add" in one or "remove" in one for one in actions),
    )


class ForeignWatch:
    """Remembers up to where each table's log was looked at; each topic for one thread at a time."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._seen: dict[Topic, int] = {}

    def news(self, table: TopicTable) -> list[Foreign]:
        """The foreign commits since the last look. At first: those after our newest commit.

        What lies before that, the offloader that made it has seen.
        """
        seen = self._seen.get(table.topic)
        found: list[Foreign] = []
        for version in range(table.version, -1 if seen is None else seen, -1):
            foreign = foreign_commits(self._storage, table.topic, [version])
            if seen is None and not foreign:
                break
            found += foreign
        self._seen[table.topic] = table.version
        return found[::-1]
