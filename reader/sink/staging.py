"""Where entries are staged before they are sent, and how they are read again."""

import uuid
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.fs as pafs

from reader.clients import Clients
from reader.encode import EncodedEntry
from reader.errors import CorruptError, UnavailableError
from reader.model import Partition
from reader.prefetch import Prefetched
from reader.sink.manifest import Manifest, PartitionEntries
from reader.sink.staged_entries import Run, ShownSchema, StagedFile, read_entries, staged_entry
from reader.sink.target import Target
from reader.storage import component

STAGING = "~sink"
"""Below the root of the storage. No topic's table is there: ``~`` is never a name's own."""
ABANDONED_SECONDS = 7 * 86_400
"""Maintenance deletes what is older and was not decided to be sent."""

INLINE_BYTES = 64 << 10
"""What a task stages below this travels to the driver, and stands in the manifest."""
HELD_BYTES = 32 << 20
"""Bytes that a task holds of all partitions, before they are written as runs."""


def staging_directory(app: str, topic: str | None = None) -> str:
    """Of one write, below the root of the storage. ``topic``: the one that it is for."""
    directory = f"{STAGING}/{component(app)}"
    return directory if topic is None else f"{directory}/{component(topic)}"


class StagingWriter:
    """Stages what one task makes. Memory: 32 MiB of entries, and what the storage buffers."""

    def __init__(self, clients: Clients, directory: str) -> None:
        self._clients = clients
        self._directory = directory
        self._path = ""
        self._stream: Any = None
        self._held: dict[str, list[bytes | memoryview]] = {}
        self._ids: dict[str, int] = {}
        self._held_bytes = 0
        self._at = 0
        self._runs: dict[str, list[Run]] = {}
        self._schemas: dict[str, ShownSchema] = {}

    def put(self, target: Target, partition: Partition, entry: EncodedEntry) -> None:
        """As ``EntrySink`` has it."""
        name = partition.full_name
        self._schemas.setdefault(name, target.shown)
        pieces = staged_entry(entry)
        self._held.setdefault(name, []).extend(pieces)
        self._ids[name] = self._ids.get(name, 0) + entry.ids
        self._held_bytes += sum(map(len, pieces))
        # Never within a message: a run has all of its chunks.
        if self._held_bytes >= HELD_BYTES and entry.messages:
            self._write()

    def finish(self, rows: int) -> StagedFile:
        """All of it is staged."""
        if self._stream is None and self._held_bytes <= INLINE_BYTES:
            inline = b"".join(self._taken())
            return StagedFile("", inline, self._runs, rows, self._schemas)
        self._write()
        self._closed()
        return StagedFile(self._path, b"", self._runs, rows, self._schemas)

    def _taken(self) -> Iterator[bytes]:
        for name, pieces in self._held.items():
            data = b"".join(pieces)
            self._runs.setdefault(name, []).append(Run(self._at, len(data), self._ids[name]))
            self._at += len(data)
            yield data
        self._held, self._ids, self._held_bytes = {}, {}, 0

    def _write(self) -> None:
        try:
            if self._stream is None:
                filesystem, root = self._clients.storage.filesystem()
                directory = f"{root}/{self._directory}"
                self._path = f"{self._directory}/{uuid.uuid4().hex}.entries"
                if isinstance(filesystem, pafs.LocalFileSystem):
                    filesystem.create_dir(directory, recursive=True)
                self._stream = filesystem.open_output_stream(f"{root}/{self._path}")
            for data in self._taken():
                self._stream.write(data)
        except OSError as error:
            raise UnavailableError(f"cannot stage what is to be sent: {error}") from error

    def _closed(self) -> None:
        try:
            self._stream.close()
        except OSError as error:
            raise UnavailableError(f"cannot stage what is to be sent: {error}") from error


class StagedEntries:
    """The entries of one partition, in order, each time they are asked for."""

    def __init__(self, clients: Clients, entries: PartitionEntries, inline: bytes) -> None:
        self._clients = clients
        self._entries = entries
        self._inline = inline

    def read(self, beyond: int) -> Generator[tuple[int, EncodedEntry]]:
        """(its first sequence id, entry) of those with an id above ``beyond``.

        Raises UnavailableError where what was staged cannot be read, and CorruptError.
        """
        sequence = self._entries.first
        wanted: list[tuple[str, Run]] = []
        for path, run in self._entries.parts:
            if not wanted and sequence + run.ids - 1 <= beyond:
                sequence += run.ids
            else:
                wanted.append((path, run))
        ahead = Prefetched(self._pieces(wanted), 2)
        try:
            for (path, run), data in zip(wanted, ahead, strict=True):
                behind = sequence + run.ids
                if len(data) != run.size:
                    raise CorruptError(f"what was staged is cut off: {path or 'inline'}")
                for entry in read_entries(data):
                    if sequence + entry.ids - 1 > beyond:
                        yield sequence, entry
                    sequence += entry.ids
                if sequence != behind:
                    raise CorruptError(f"what was staged is not what it was: {path or 'inline'}")
        finally:
            ahead.close()

    def _pieces(self, parts: Sequence[tuple[str, Run]]) -> Generator[memoryview]:
        for path, run in parts:
            if not path:
                yield memoryview(self._inline)[run.offset : run.offset + run.size]
                continue
            try:
                filesystem, root = self._clients.storage.filesystem()
                with filesystem.open_input_file(f"{root}/{path}") as opened:
                    yield memoryview(opened.read_at(run.size, run.offset))
            except FileNotFoundError as error:
                raise UnavailableError(
                    f"what was staged is gone: {path}",
                    hint="another run of the same write has sent it, or the storage has lost it",
                ) from error
            except OSError as error:
                raise UnavailableError(f"cannot read what was staged: {error}") from error


def inline_of(manifest: Manifest, entries: PartitionEntries) -> tuple[PartitionEntries, bytes]:
    """A partition's entries with only those inline bytes that are its own."""
    data = bytearray()
    parts: list[tuple[str, Run]] = []
    for path, run in entries.parts:
        if path:
            parts.append((path, run))
        else:
            parts.append(("", Run(len(data), run.size, run.ids)))
            data += manifest.inline[run.offset : run.offset + run.size]
    return replace(entries, parts=parts), bytes(data)
