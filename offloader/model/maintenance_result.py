"""What maintenance did to one topic's table."""

from dataclasses import dataclass

from offloader.model.byte_sizes import size_text
from reader.model import Partition, Position, Topic


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """What was done to one table, or with ``dry_run`` would be.

    ``version``: the table's after it, None without a table. ``compacted`` files became ``into``
    files. ``expired_rows``: of whole files, and of ``rewritten`` ones without their old rows (not
    counted by a dry run). ``vacuumed``: files deleted, that no version in the window refers to.
    ``aborted_rows``: found in ``aborted_transactions`` that Pulsar calls aborted by now, the first
    at ``aborted_at``; they stay. ``more``: there is more to rewrite, for the next turn. Bytes are
    those of files.
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
    aborted_rows: int = 0
    aborted_transactions: int = 0
    aborted_at: tuple[Partition, Position] | None = None
    more: bool = False
    dry_run: bool = False

    @property
    def idle(self) -> bool:
        """Whether there was nothing to do."""
        done = self.compacted or self.expired_files or self.rewritten or self.vacuumed
        return not (done or self.aborted_rows)

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
        if self.aborted_at:
            partition, at = self.aborted_at
            text += (
                f"; warning: {self.aborted_rows} rows of {self.aborted_transactions} transactions, "
                f"from {at} of {partition} on, were committed when they were offloaded, and Pulsar "
                "calls them aborted now: its readers do not see them, the table keeps them"
            )
        later = "; more at the next turn" if self.more else ""
        would = "would be: " if self.dry_run and done else ""
        return f"{self.topic}: {would}{text}{later} (version {self.version})"
