"""How long after it was written a file may still be committed.

Vacuum deletes a file that was written ``offload.vacuum_after`` ago and that no version refers to.
A commit that came later would name a file that is not there: so each attempt checks how old its
files are, and half of that window is the limit. The rest is for the attempt itself, and for clocks.

Files have the storage's times. Where this host's clock does not show that the newest of them was
written just now, the storage is asked for its time: a host whose clock is a day ahead would commit
nothing, and one that is behind might commit what vacuum has deleted.
"""

from collections.abc import Callable, Sequence

from offloader.config import OffloadConfig
from offloader.output import WrittenFile
from reader.errors import CommitConflictError

_JUST_NOW_MS = 5 * 60_000


def max_file_age_ms(settings: OffloadConfig) -> int:
    """How old (ms) a file may be that is committed."""
    return int(settings.vacuum_after.total_seconds() * 1000) // 2


def check_file_age(
    files: Sequence[WrittenFile], limit_ms: int, now_ms: int, storage_ms: Callable[[], int]
) -> None:
    """Raise CommitConflictError where a file is older than ``limit_ms``: write it again.

    now_ms: by this host's clock.
    storage_ms: asks the storage for its time. Raises UnavailableError.

    A storage that does not say when (0) has nothing that vacuum deletes.
    """
    newest = max((one.modified for one in files), default=0)
    if newest and abs(now_ms - newest) > _JUST_NOW_MS:
        now_ms = storage_ms()
    for one in files:
        age = now_ms - one.modified
        if one.modified and age > limit_ms:
            raise CommitConflictError(
                f"{one.path} was written {age / 3_600_000:.1f} hours ago, and after "
                f"{limit_ms / 3_600_000:.1f} (half of offload.vacuum_after) a file is not "
                "committed any more: vacuum may delete it"
            )
