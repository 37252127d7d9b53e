"""How long after it was written a file may still be committed.

Vacuum deletes a file that was written ``offload.vacuum_after`` ago and that no version refers to.
A commit that came later would name a file that is not there: so each attempt checks how old its
files are, and half of that window is the limit. The rest is for the attempt itself, and for clocks.
"""

from __future__ import annotations

from collections.abc import Iterable

from offloader.config import OffloadConfig
from offloader.model import WrittenFile
from reader.errors import CommitConflictError

__all__ = ["LEAST_MAX_AGE_MS", "check_file_age", "max_file_age_ms"]

LEAST_MAX_AGE_MS = 12 * 3_600_000
"""Of the least ``offload.vacuum_after`` that there is."""


def max_file_age_ms(settings: OffloadConfig) -> int:
    """How old (ms) a file may be that is committed."""
    return int(settings.vacuum_after.total_seconds() * 1000) // 2


def check_file_age(files: Iterable[WrittenFile], limit_ms: int, now_ms: int) -> None:
    """Raises CommitConflictError where a file is older than ``limit_ms``: write it again.

    A storage that does not say when (0) has nothing that vacuum deletes.
    """
    for one in files:
        age = now_ms - one.modified
        if one.modified and age > limit_ms:
            raise CommitConflictError(
                f"{one.path} was written {age / 3_600_000:.1f} hours ago, and after "
                f"{limit_ms / 3_600_000:.1f} (half of offload.vacuum_after) a file is not "
                "committed any more: vacuum may delete it"
            )
