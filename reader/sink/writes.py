"""A write's name, and which of its versions were decided and sent: its manifests.

``~sink/<app>/<version>.manifest`` below the storage's root. A version is decided by who puts its
manifest first, and done once that is marked as sent; the newest one tells which sequence ids come
next. Older ones, and what was staged for them, are deleted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reader.clients import Clients
from reader.errors import ConfigurationError, PulsarLakeError
from reader.sink.manifest import Manifest
from reader.sink.staged_entries import StagedFile
from reader.sink.staging import staging_directory

__all__ = ["NamedWrite", "producer_name"]

_MANIFEST = re.compile(r".*/([0-9]{20})\.manifest")


def producer_name(app: str) -> str:
    """Of all producers of a write."""
    return f"pulsar-lake-{app}"


class NamedWrite:
    """The versions of one write, for its driver. ``app``: its name. ``now``: s since the epoch.

    All raise UnavailableError where the storage does not answer.
    """

    def __init__(self, clients: Clients, app: str, *, now: Callable[[], float] = time.time) -> None:
        self._clients = clients
        self.app = app
        self._now = now
        self._directory = staging_directory(app)
        self._latest: Manifest | None = None
        self._known = False
        self._surplus: set[str] = set()  # manifests before the newest

    @property
    def directory(self) -> str:
        """Where its tasks stage, below the storage's root."""
        return self._directory

    def latest(self) -> Manifest | None:
        """The newest version that was decided."""
        if not self._known:
            versions = [
                found[1]
                for name in self._clients.storage.objects().names(self._directory)
                if (found := _MANIFEST.fullmatch(name))
            ]
            self._latest = self._read(int(max(versions))) if versions else None
            self._surplus = {self._path(int(one)) for one in sorted(versions)[:-1]}
            self._known = True
        return self._latest

    def decide(
        self, version: int, staged: Sequence[StagedFile], *, encrypted: bool
    ) -> tuple[Manifest, bool]:
        """(what this version sends, whether that was decided just now).

        One that was decided earlier, by an attempt that failed or another driver, is what it was,
        and what was staged now is dropped. A version below the newest was sent long ago. Raises
        ConfigurationError where an earlier version was decided and never sent whole.
        """
        latest = self.latest()
        if latest is not None and latest.version >= version:
            self._drop(staged)
            return latest, False
        if latest is not None and not latest.sent:
            raise ConfigurationError(
                f"version {latest.version} of the write {self.app} was begun and not finished",
                hint="run it again first: what is left of it is sent then",
            )
        manifest = Manifest.of(
            producer_name(self.app),
            version,
            int(self._now() * 1000),
            staged,
            latest.following if latest is not None else {},
            encrypted=encrypted,
        )
        objects, path, data = (
            self._clients.storage.objects(),
            self._path(version),
            manifest.to_bytes(),
        )
        try:
            first = objects.put_if_absent(path, data)
        except PulsarLakeError:
            # It may have been applied, and its answer lost.
            if objects.get(path) != data:
                raise
            first = True
        if not first and objects.get(path) != data:  # else a retry of the client met its own PUT
            self._drop(staged)
            manifest, first = self._read(version), False
        else:
            first = True
        if latest is not None:
            self._surplus.add(self._path(latest.version))
        self._latest = manifest
        return manifest, first

    def sent(self, manifest: Manifest) -> None:
        """All of it is in its topics: what was staged for it and older versions are not needed.

        What attempts that failed have staged is left to maintenance: nobody can tell here whether
        another driver still needs it.
        """
        objects = self._clients.storage.objects()
        done = manifest.as_sent()
        objects.put(self._path(manifest.version), done.to_bytes())
        self._latest = done
        objects.delete([*manifest.files, *self._surplus])
        self._surplus.clear()

    def forget(self) -> None:
        """Delete what is staged: nobody but who has this object will ask for the name again."""
        if self._latest is not None:
            self._latest = self._latest.as_sent()
        objects = self._clients.storage.objects()
        objects.delete(objects.names(self._directory))

    def state(self) -> dict[str, Any]:
        """What ``assume`` takes: so that a write without a name outlives its driver's helper."""
        following = self._latest.following if self._latest is not None else {}
        version = self._latest.version if self._latest is not None else -1
        return {"version": version, "following": dict(following)}

    def assume(self, state: Mapping[str, Any]) -> None:
        """Nothing is known of the name but this; a manifest that is there decides all the same."""
        if self.latest() is None and state["version"] >= 0:
            self._latest = Manifest(
                producer_name(self.app), state["version"], 0, 0, (), state["following"], sent=True
            )

    def _drop(self, staged: Sequence[StagedFile]) -> None:
        self._clients.storage.objects().delete([one.path for one in staged if one.path])

    def _read(self, version: int) -> Manifest:
        path = self._path(version)
        data = self._clients.storage.objects().get(path)
        if data is None:
            raise PulsarLakeError(f"the manifest {path} is gone", hint="try again")
        return Manifest.from_bytes(data, path)

    def _path(self, version: int) -> str:
        return f"{self._directory}/{version:020d}.manifest"
