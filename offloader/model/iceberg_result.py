"""What following a Delta table did to its Iceberg table, and how far that is behind."""

from dataclasses import dataclass

from reader.model import Topic


@dataclass(frozen=True, slots=True)
class IcebergResult:
    """Of one topic. ``version``: of its Delta table, that Iceberg shows now; None without a table.

    ``before``: the one that it showed before, None where there was none of ours. ``added`` and
    ``removed``: files. ``expired``: snapshots. ``cleaned``: files of Iceberg's own, deleted.
    ``restored``: whether another writer had changed the columns, which are as they were again.
    """

    topic: Topic
    version: int | None = None
    before: int | None = None
    added: int = 0
    removed: int = 0
    expired: int = 0
    cleaned: int = 0
    restored: bool = False

    @property
    def idle(self) -> bool:
        """Whether there was nothing to do."""
        return self.version == self.before and not (
            self.added or self.removed or self.expired or self.cleaned or self.restored
        )

    @property
    def more(self) -> bool:
        """Whether the next turn has to come at once: never, it is all done."""
        return False

    def __str__(self) -> str:
        if self.version is None:
            return f"{self.topic}: no table yet, so no Iceberg table"
        text = f"{self.topic}: Iceberg shows version {self.version}"
        if self.added or self.removed:
            text += f", {self.added} files added, {self.removed} taken out"
        if self.restored:
            text += "; another writer had changed its columns, which are as they were again"
        if self.expired or self.cleaned:
            text += f"; {self.expired} snapshots expired, {self.cleaned} files of metadata deleted"
        return text


@dataclass(frozen=True, slots=True)
class IcebergLag:
    """How far Iceberg is behind: ``versions`` of the Delta table (None: Iceberg has no table, or
    one that another writer has changed), and ``seconds`` since the first of them was committed.

    ``version``: the Delta version that it shows.
    """

    version: int | None
    versions: int | None
    seconds: float

    def __str__(self) -> str:
        if self.versions is None:
            return "there is no Iceberg table yet"
        if not self.versions:
            return f"Iceberg shows version {self.version}, the newest"
        return (
            f"Iceberg shows version {self.version}, {self.versions} behind, "
            f"for {round(self.seconds)} s"
        )
