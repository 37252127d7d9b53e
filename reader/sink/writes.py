"""A write's name, and which of its versions were decided and sent: its manifests.

``~sink/<app>/<version>.manifest`` below the storage's root, or ``~sink/<app>/<topic>/…`` of a write
to one topic: another topic's is another write. A version is decided by who puts its manifest first,
and done once that is marked as sent; the newest one tells which sequence ids come next, and of
which producer name. Older ones, and what was staged for them, are deleted.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Any

from reader.clients import Clients
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.model import Partition, Topic
from reader.pulsar import LogEnd
from reader.sink.manifest import Manifest, producer_name
from reader.sink.staged_entries import Run, ShownSchema, StagedFile
from reader.sink.staging import ABANDONED_SECONDS, STAGING, staging_directory
from reader.storage import Storage, StoredObject, component

_MANIFEST = re.compile(r".*/([0-9]{20})\.manifest")
MANIFEST_INLINE_BYTES = 1 << 20
RUN_BYTES = 32 << 20
_PARALLEL_REQUESTS = 8
_MARGIN_SECONDS = 86_400
"""Between a look at what is staged and the manifest that keeps it."""


def unsent_manifests(storage: Storage, paths: Iterable[str]) -> dict[str, Manifest]:
    """Those of ``paths`` that are manifests of which something may still have to be sent.

    Raises UnavailableError, and CorruptError for a manifest that is none.
    """
    found: dict[str, Manifest] = {}
    for path in paths:
        if _MANIFEST.fullmatch(path) and (data := storage.objects().get(path)) is not None:
            manifest = Manifest.from_bytes(data, path)
            if not manifest.sent:
                found[path] = manifest
    return found


def has_writes(storage: Storage) -> bool:
    """Return whether writes have decided or staged anything there. Raises UnavailableError."""
    with suppress(ConfigurationError):  # a storage where nothing can be staged
        return bool(storage.objects().below(STAGING))
    return False


def forget_writes(storage: Storage, topic: Topic) -> None:
    """Delete what writes to this topic have decided and staged: it is no more.

    Not of those whose rows name their topics. Raises UnavailableError.
    """
    objects, place = storage.objects(), component(topic.local_name)
    found = [one.path for one in objects.below(STAGING) if one.path.split("/")[2:-1] == [place]]
    objects.delete(sorted(found, key=lambda path: not _MANIFEST.fullmatch(path)))


class NamedWrite:
    """The versions of one write, for its driver.

    ``app``: its name. ``topic``: where all of it goes; None: where each row says. ``named``:
    whether it may be run again under this name. ``now``: s since the epoch.

    All raise UnavailableError where the storage does not answer.
    """

    def __init__(
        self,
        clients: Clients,
        app: str,
        topic: str | None = None,
        *,
        named: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clients = clients
        self.app = app
        self._named = named
        self._now = now
        self._directory = staging_directory(app, topic)
        self._manifests = re.compile(re.escape(self._directory) + r"/([0-9]{20})\.manifest")
        self._noted = re.compile(re.escape(self._directory) + r"/([0-9]{20})\.(manifest|refused)")
        self._latest: Manifest | None = None
        self._known = False
        self._surplus: set[str] = set()  # manifests and refusals before the newest version

    @property
    def directory(self) -> str:
        """Where its tasks stage, below the storage's root."""
        return self._directory

    def latest(self) -> Manifest | None:
        """The newest version that was decided."""
        return self._latest if self._known else self._look(self._below())

    def decide(
        self, version: int, staged: Sequence[StagedFile], *, encrypted: bool
    ) -> tuple[Manifest, bool] | None:
        """(what this version sends, whether that was decided just now); None: nothing, and nobody
        will ask for it again.

        One that was decided earlier, by an attempt that failed or another driver, is what it was,
        and what was staged now is dropped. A version below the newest was sent long ago. Raises
        ConfigurationError where an earlier version was decided and never sent whole, and
        UnavailableError where what was staged is gone, or might be before it is sent.
        """
        while True:
            found = self._below()
            latest = self._look(found)  # others may have gone on meanwhile
            if latest is not None and latest.version >= version:
                self._drop(staged, latest)
                return latest, False
            if latest is not None and not latest.sent:
                raise ConfigurationError(
                    f"version {latest.version} of the write {self.app} was begun and not finished",
                    hint="run it again first: what is left of it is sent then",
                )
            empty = not any(one.rows for one in staged)
            if empty and not self._named:
                return None
            self._require_fresh(staged, found)
            staged = self._in_files(staged)
            manifest = Manifest(
                latest.producer if latest is not None else producer_name(self.app),
                version,
                int(self._now() * 1000),
                following=latest.following if latest is not None else {},
                encrypted=encrypted,
                named=self._named,
                path=self._path(version),
            ).sending(staged, self._ends(staged))
            if empty:  # done, whatever rows it has when it is run again
                manifest = manifest.as_sent()
            if not self._put(manifest):
                self._latest = self._read(version)
                self._drop(staged, self._latest)
                return self._latest, False
            found = self._below()
            others = [one for one in self._versions(found) if one != version]
            if not others or (latest is not None and max(others) == latest.version):
                self._latest = manifest
                self._surplus = self._older(found, version)
                if empty:
                    self._tidy()
                return manifest, True
            # Another driver has decided meanwhile: this one would give its ids once more.
            self._clients.storage.objects().delete([self._path(version)])

    def sent(self, manifest: Manifest) -> None:
        """All of it is in its topics: what was staged for it and older versions are not needed.

        What attempts that failed have staged is left to maintenance: nobody can tell here whether
        another driver still needs it.
        """
        objects = self._clients.storage.objects()
        done = manifest.as_sent()
        objects.put(self._path(manifest.version), done.to_bytes())
        self._latest = done
        objects.delete(manifest.files)
        self._tidy()

    def _tidy(self) -> None:
        self._clients.storage.objects().delete(sorted(self._surplus))
        self._surplus.clear()

    def give_up(self, version: int) -> None:
        """What this version or an earlier one has not sent is sent in another way."""
        latest = self.latest()
        if latest is not None and not latest.sent and latest.version <= version:
            # Under its name nothing may have come, and the next version would miss it.
            self.sent(replace(latest, producer=producer_name(self.app), following={}))

    def forget(self) -> None:
        """Delete what is staged: nobody but who has this object will ask for the name again."""
        if self._latest is not None:
            self._latest = self._latest.as_sent()
        objects = self._clients.storage.objects()
        paths = [one.path for one in objects.below(self._directory)]
        manifests = [path for path in paths if self._manifests.fullmatch(path)]
        objects.delete(manifests)  # first: one whose files are gone could never be sent
        objects.delete([path for path in paths if path not in manifests])

    def state(self) -> dict[str, Any]:
        """What ``assume`` takes: so that a write without a name outlives its driver's helper."""
        latest = self._latest
        if latest is None:
            return {"version": -1, "following": {}, "producer": ""}
        return {
            "version": latest.version,
            "following": dict(latest.following),
            "producer": latest.producer,
        }

    def assume(self, state: Mapping[str, Any]) -> None:
        """Nothing is known of the name but this; a manifest that is there decides all the same."""
        if self.latest() is None and state["version"] >= 0:
            self._latest = Manifest(
                state["producer"], state["version"], 0, 0, (), state["following"], sent=True
            )

    def _look(self, found: Sequence[StoredObject]) -> Manifest | None:
        """The newest version that was decided by now; what was assumed, where there is none."""
        versions = self._versions(found)
        if versions:
            newest, known = max(versions), self._latest
            # One that was sent never changes.
            if known is None or known.version != newest or not known.sent:
                self._latest = self._read(newest)
            self._surplus = self._older(found, newest)
        elif self._named:
            self._latest = None  # forgotten: the topic was dropped
        self._known = True
        return self._latest

    def _versions(self, found: Iterable[StoredObject]) -> list[int]:
        return [int(name[1]) for one in found if (name := self._manifests.fullmatch(one.path))]

    def _older(self, found: Iterable[StoredObject], newest: int) -> set[str]:
        """Return what versions before the newest have left beside their staged files."""
        return {
            one.path
            for one in found
            if (name := self._noted.fullmatch(one.path)) and int(name[1]) != newest
        }

    def _in_files(self, staged: Sequence[StagedFile]) -> Sequence[StagedFile]:
        """What many tasks have inline is a file: a manifest and its tasks stay small."""
        if sum(len(one.inline) for one in staged) <= MANIFEST_INLINE_BYTES:
            return staged
        path = f"{self._directory}/{uuid.uuid4().hex}.entries"
        data = bytearray()
        moved: list[StagedFile] = []
        held = 0

        def place(one: StagedFile) -> int:
            nonlocal held
            held += len(one.inline)
            return -1 if one.path else held // RUN_BYTES

        for number, some in groupby(staged, place):
            group = list(some)
            moved += group if number < 0 else [_together(group, path, data)]
        self._clients.storage.objects().put(path, bytes(data))
        return moved

    def _ends(self, staged: Sequence[StagedFile]) -> Mapping[str, LogEnd]:
        """Where the partitions end for which something is staged, by name."""
        names = sorted({name for one in staged for name in one.runs})
        partitions = map(Partition.parse, names)
        if len(names) <= 1:
            return dict(zip(names, map(self._clients.admin.log_end, partitions), strict=True))
        with ThreadPoolExecutor(min(_PARALLEL_REQUESTS, len(names))) as pool:
            found = pool.map(self._clients.admin.log_end, partitions)
            return dict(zip(names, found, strict=True))

    def _below(self) -> list[StoredObject]:
        return self._clients.storage.objects().below(self._directory)

    def _require_fresh(self, staged: Sequence[StagedFile], found: Sequence[StoredObject]) -> None:
        """Once decided, it has to be sent: so not what maintenance is about to delete.

        Ages are the storage's, which is at least as late as its newest file.
        """
        written = {one.path: one.written for one in found}
        now_ms = max([self._now() * 1000, *written.values()])
        oldest = now_ms - (ABANDONED_SECONDS - _MARGIN_SECONDS) * 1000
        for one in staged:
            if one.path and written.get(one.path, 0) < oldest:
                raise UnavailableError(
                    f"what a task staged is gone, or will be soon: {one.path}",
                    hint="maintenance deletes it after seven days: run the write again, in parts "
                    "that take less",
                )

    def _put(self, manifest: Manifest) -> bool:
        """Whether it is this one that decides."""
        objects, path = self._clients.storage.objects(), self._path(manifest.version)
        data = manifest.to_bytes()
        try:
            if objects.put_if_absent(path, data):
                return True
        except PulsarLakeError:
            # It may have been applied, and its answer lost.
            if objects.get(path) != data:
                raise
            return True
        return objects.get(path) == data  # a retry of the client may have met its own PUT

    def _drop(self, staged: Sequence[StagedFile], decided: Manifest) -> None:
        """But what was decided to be sent: who asks once more gives the same files."""
        paths = [one.path for one in staged if one.path and one.path not in decided.files]
        self._clients.storage.objects().delete(paths)

    def _read(self, version: int) -> Manifest:
        path = self._path(version)
        data = self._clients.storage.objects().get(path)
        if data is None:
            raise PulsarLakeError(f"the manifest {path} is gone", hint="try again")
        return Manifest.from_bytes(data, path)

    def _path(self, version: int) -> str:
        return f"{self._directory}/{version:020d}.manifest"


def _together(staged: Sequence[StagedFile], path: str, data: bytearray) -> StagedFile:
    """What tasks have inline as one of a file: a run of each partition, in the tasks' order."""
    runs: dict[str, list[Run]] = {}
    schemas: dict[str, ShownSchema] = {}
    for partition in dict.fromkeys(name for one in staged for name in one.runs):
        begin, ids = len(data), 0
        for one in staged:
            for run in one.runs.get(partition, ()):
                data += one.inline[run.offset : run.offset + run.size]
                ids += run.ids
                schemas[partition] = one.schemas[partition]
        runs[partition] = [Run(begin, len(data) - begin, ids)]
    return StagedFile(path, b"", runs, sum(one.rows for one in staged), schemas)
