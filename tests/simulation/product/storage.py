"""The product's storage: files in memory, whose times are the simulated clock's."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from reader.config import StorageConfig
from reader.storage.local import LocalStorage
from reader.storage.objects import Objects
from reader.storage.stored_object import StoredObject
from reader.storage.stores.obstore_client import ObstoreClient
from testbed.simulation import Effects, FailureError, HostClock


class FileTimes:
    """When each file was written, ms, by the storage's clock.

    ``repeats_puts``: whether the store is asked once more for each put-if-absent, as its client
    had no answer: the second is refused.
    """

    def __init__(self, clock: HostClock) -> None:
        self._clock = clock
        self.repeats_puts = False
        self._known: dict[str, int] = {}

    def written(self, path: str) -> None:
        self._known[path] = self._clock.now_ms

    def of(self, path: str) -> int:
        """Of a file that only delta-rs knows: now, when it is first seen."""
        return self._known.setdefault(path, self._clock.now_ms)


class SimulatedStorage(LocalStorage):
    """One process's view of the files."""

    def __init__(self, config: StorageConfig, times: FileTimes, effects: Effects) -> None:
        super().__init__(config)
        self.times = times
        self.effects = effects

    def _open_filesystem(self) -> tuple[pafs.FileSystem, str]:
        return pafs.PyFileSystem(_Files(self.times, self.effects)), self.root

    def _open_objects(self) -> Objects:
        client = _StampedClient(self.root, self.times, self.effects)
        return Objects(client)  # type: ignore[arg-type]


class _StampedClient:
    """The objects of a directory, with the storage's times.

    Small objects are read and written in this thread, which costs a tenth of a call of obstore.
    """

    def __init__(self, root: str, times: FileTimes, effects: Effects) -> None:
        self._root = root
        self._times = times
        self._effects = effects
        self._real = ObstoreClient.of_directory(root)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def put(self, path: str, data: bytes) -> None:
        with store_effect(self._effects, "put"):
            self._write(path, data, "wb")

    def put_if_absent(self, path: str, data: bytes) -> bool:
        with store_effect(self._effects, "put if absent"):
            try:
                self._write(path, data, "xb")
            except FileExistsError:
                return False
        return not self._times.repeats_puts

    def get(self, path: str) -> bytes:
        with store_effect(self._effects, "get"):
            return Path(self._root, path).read_bytes()

    def info(self, path: str) -> StoredObject | None:
        with store_effect(self._effects, "info"):
            file = Path(self._root, path)
            return self._stored(file) if file.is_file() else None

    def below(self, directory: str) -> list[StoredObject]:
        with store_effect(self._effects, "list"):
            files = sorted(Path(self._root, directory).rglob("*"))
            return [self._stored(one) for one in files if one.is_file()]

    def delete(self, paths: Sequence[str]) -> None:
        if paths:
            with store_effect(self._effects, "delete"):
                for path in paths:
                    Path(self._root, path).unlink(missing_ok=True)

    def _write(self, path: str, data: bytes, mode: str) -> None:
        file = Path(self._root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open(mode) as opened:
            opened.write(data)
        self._times.written(str(file))

    def _stored(self, file: Path) -> StoredObject:
        path = str(file.relative_to(self._root))
        return StoredObject(path, file.stat().st_size, self._times.of(str(file)))


class _Files(pafs.FileSystemHandler):  # type: ignore[misc]
    def __init__(self, times: FileTimes, effects: Effects) -> None:
        self._times = times
        self._effects = effects

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def get_type_name(self) -> str:
        return "simulated"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[pafs.FileInfo]:
        return [self._info(one) for one in paths]

    def get_file_info_selector(self, selector: Any) -> list[pafs.FileInfo]:
        root = Path(selector.base_dir)
        if not root.is_dir():
            if selector.allow_not_found:
                return []
            raise FileNotFoundError(str(root))
        return [self._info(str(one)) for one in sorted(root.iterdir())]

    def _info(self, path: str) -> pafs.FileInfo:
        if Path(path).is_dir():
            return pafs.FileInfo(path, pafs.FileType.Directory)
        if not Path(path).exists():
            return pafs.FileInfo(path, pafs.FileType.NotFound)
        size = Path(path).stat().st_size
        mtime_ns = self._times.of(path) * 1_000_000
        return pafs.FileInfo(path, pafs.FileType.File, size=size, mtime_ns=mtime_ns)

    def create_dir(self, path: str, recursive: bool) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    def delete_file(self, path: str) -> None:
        with store_effect(self._effects, "delete"):
            Path(path).unlink()

    def open_input_stream(self, path: str) -> Any:
        return self._read(path)

    def open_input_file(self, path: str) -> Any:
        return self._read(path)

    def _read(self, path: str) -> Any:
        if not os.access(path, os.F_OK):
            raise FileNotFoundError(path)
        with store_effect(self._effects, "read file"):
            return pa.OSFile(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        with store_effect(self._effects, "write file"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._times.written(path)
            Path(path).touch()
        return pa.PythonFile(Path(path).open("wb"), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError

    def delete_dir(self, path: str) -> None:
        raise NotImplementedError

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError


class store_effect:  # noqa: N801 - a context manager
    """An effect whose failure is an OSError."""

    def __init__(self, effects: Effects, name: str) -> None:
        self._effect = effects.effect(name, "storage")

    def __enter__(self) -> None:
        try:
            self._effect.__enter__()
        except FailureError as error:
            raise OSError("simulated") from error

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self._effect.__exit__(kind, error, trace)
        except FailureError as failed:
            raise OSError("simulated") from failed
