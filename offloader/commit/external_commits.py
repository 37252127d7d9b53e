"""Commits that are not ours, found in the log and named: RESTORE, DELETE, an OPTIMIZE.

Only this offloader may commit to its tables. Every commit of ours carries an id
(``reader.table.log.COMMIT_KEY``); one without is an external writer's. A RESTORE takes rows out
and leaves the watermarks where they are, so nobody would offload them again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from reader.model import Topic
from reader.storage import Storage
from reader.table import TopicTable
from reader.table.log import LoggedCommit, read_commit


@dataclass(frozen=True, slots=True)
class ExternalCommit:
    """One commit of an external writer. ``at_ms``: ms since the epoch; ``touches_files``: it
    added or removed some, so rows may be others."""

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


def external_commits(
    storage: Storage, topic: Topic, versions: Iterable[int]
) -> list[ExternalCommit]:
    """Those among ``versions`` that are not ours, and not cleaned up. Raises UnavailableError."""
    found = (read_commit(storage, topic, version) for version in versions)
    return [external_commit(one) for one in found if one is not None and not one.id]


def external_commit(commit: LoggedCommit) -> ExternalCommit:
    """A commit without an id of ours, described."""
    return ExternalCommit(
        version=commit.version,
        operation=commit.operation or "a commit without a name",
        engine=commit.engine or "an external writer",
        at_ms=commit.at_ms,
        touches_files=bool(commit.adds) or commit.removes,
    )


class ExternalCommits:
    """Remembers up to where each table's log was checked; each topic for one thread at a time."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._seen: dict[Topic, int] = {}

    def since_last(self, table: TopicTable) -> list[ExternalCommit]:
        """Those since the last call for this table. At first: those after our newest commit.

        What lies before that, the offloader that made it has seen.
        """
        seen = self._seen.get(table.topic)
        found: list[ExternalCommit] = []
        for version in range(table.version, -1 if seen is None else seen, -1):
            external = external_commits(self._storage, table.topic, [version])
            if seen is None and not external:
                break
            found += external
        self._seen[table.topic] = table.version
        return found[::-1]
