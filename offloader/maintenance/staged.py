"""Removes what writes to topics have staged and never sent: of tasks that failed, and of jobs.

A file below ``~sink/`` goes once it is seven days old, by the storage's clock, unless a manifest
says that it is to be sent. A write decides nothing about files of that age (``reader/sink``), and
they are listed before the manifests are read: so none is deleted that is still needed. Of a batch
without a name, which nobody runs again after that time, the manifest goes as well, and with a
manifest what is noted of its refusals.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from posixpath import basename, dirname

from offloader.model import size_text
from reader.errors import ConfigurationError, CorruptError
from reader.sink import ABANDONED_SECONDS, STAGING, refusal_path, unsent_manifests
from reader.storage import Storage, is_temporary

_ENTRIES, _MANIFEST, _REFUSED = ".entries", ".manifest", ".refused"
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class AbandonedFiles:
    """``size`` in bytes. ``damaged``: manifests that cannot be read, whose files stay."""

    files: int = 0
    size: int = 0
    damaged: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.files} staged files ({size_text(self.size)}) that no write will send"


class StagingCleaner:
    """Of one storage. ``clock``: s, monotonic. ``raise_if_stopped`` is called all the while."""

    def __init__(
        self,
        storage: Storage,
        *,
        clock: Callable[[], float] = time.monotonic,
        raise_if_stopped: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._raise_if_stopped = raise_if_stopped
        self._next = 0.0

    def clean_if_due(self) -> AbandonedFiles:
        """Once a day; an attempt that fails counts. Raises UnavailableError."""
        if self._clock() < self._next:
            return AbandonedFiles()
        self._next = self._clock() + _DAY_SECONDS
        return self.clean()

    def clean(self, *, dry_run: bool = False) -> AbandonedFiles:
        """Delete what can go, or only count it. Raises UnavailableError."""
        try:
            objects = self._storage.objects()
        except ConfigurationError:
            return AbandonedFiles()  # nobody can stage there
        found = objects.below(STAGING)
        if not found:
            return AbandonedFiles()
        before = _now_ms(self._storage, dry_run) - ABANDONED_SECONDS * 1000
        old = {one.path: one for one in found if one.written < before}
        kept: set[str] = set()
        manifests: list[str] = []
        damaged = {}
        for directory in sorted({dirname(path) for path in old}):
            self._raise_if_stopped()
            here = {one.path: one.written for one in found if dirname(one.path) == directory}
            try:
                for path, manifest in unsent_manifests(self._storage, here).items():
                    if manifest.named or here[path] >= before:
                        kept.update(manifest.files)
                    else:
                        manifests.append(path)
            except CorruptError as error:
                damaged[directory] = str(error)
        remaining = {one.path for one in found if one.path.endswith(_MANIFEST)} - set(manifests)
        noted = set(map(refusal_path, remaining))
        gone = [
            one
            for path, one in old.items()
            if is_temporary(basename(path))
            or (path.endswith(_REFUSED) and path not in noted)
            or (path.endswith(_ENTRIES) and path not in kept and dirname(path) not in damaged)
        ]
        if not dry_run:
            for path in (*manifests, *(one.path for one in gone)):
                self._raise_if_stopped()
                objects.delete([path])
        return AbandonedFiles(len(gone), sum(one.size for one in gone), tuple(damaged.values()))


def _now_ms(storage: Storage, dry_run: bool) -> int:
    """Return the time by the storage's clock; a dry run writes nothing and takes the host's."""
    if dry_run:
        return time.time_ns() // 1_000_000
    return storage.objects().clock_ms(STAGING)
