"""What maintenance did to one topic's table."""

from __future__ import annotations

from dataclasses import dataclass

from offloader.model.byte_sizes import size_text
from reader.model import Topic

__all__ = ["MaintenanceResult"]


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """What was done to one table, or with ``dry_run`` would be.

    ``version``: the table's after it, None without a table. ``compacted`` files became ``into``
    files. ``expired_rows``: of whole files, and of ``rewritten`` ones without their old rows (not
    counted by a dry run). ``vacuumed``: files deleted, that no version in the window refers to.
    ``more``: there is more to rewrite, for the next turn. Bytes are those of files.
    """

    topic: Topic
    version: int | None = None
    compacted: int = 0
    into: int = 0
    compacted_bytes: int = 0
    expired_files: int = 0
    rewritten: int = 0
    expired_rows: int = 0
    expired_bytes: int = 0
    vacuumed: int = 0
    vacuumed_bytes: int = 0
    more: bool = False
    dry_run: bool = False

    @property
    def idle(self) -> bool:
        """Whether there was nothing to do."""
        return not (self.compacted or self.expired_files or self.rewritten or self.vacuumed)

    def __str__(self) -> str:
        if self.version is None:
            return f"{self.topic}: no table yet"
        done = []
        if self.expired_files or self.rewritten:
            done.append(
                f"{self.expired_rows} rows expired: {self.expired_files} files "
                f"({size_text(self.expired_bytes)}) taken out, {self.rewritten} rewritten"
            )
        if self.compacted:
            size = size_text(self.compacted_bytes)
            done.append(f"{self.compacted} files ({size}) compacted into {self.into}")
        if self.vacuumed:
            done.append(f"{self.vacuumed} unused files ({size_text(self.vacuumed_bytes)}) deleted")
        text = "; ".join(done) or "nothing to do"
        later = "; more at the next turn" if self.more else ""
        would = "would be: " if self.dry_run and done else ""
        return f"{self.topic}: {would}{text}{later} (version {self.version})"
