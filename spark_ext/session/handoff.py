"""Passing a configuration to other processes: the planner and Spark's Python workers.

They get a path, never values: settings hold secrets, and Spark shows its options in its UI and in
plans. For a configuration file that is its path. A configuration made in code is kept in memory
that has no name in any folder (memfd_create(2)) and is read through ``/proc`` by processes of the
same user: however this process ends, nothing of it stays behind.
"""

import atexit
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import BaseModel, SecretStr

from reader.errors import ConfigurationError
from spark_ext.session.settings import LakeConfig

_HANDED = re.compile(r"/proc/\d+/fd/\d+|.*/pulsar-lake-[^/]+/settings\.json")

_lock = Lock()
_handed: list[tuple[LakeConfig, str]] = []


def load_settings(path: str | None) -> LakeConfig:
    """Load what ``settings_file`` wrote, or a user's TOML file; None: the environment alone."""
    if not path or not _HANDED.fullmatch(path):
        return LakeConfig.load(path or None)
    try:
        given = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "they are not whole"
        raise ConfigurationError(
            f"cannot read the settings {path}: {why}",
            hint="they are gone with the process that made them",
        ) from None  # a parser's error has what it read
    return LakeConfig.load(given)


def settings_file(source: LakeConfig | Mapping[str, Any] | str | Path | None) -> str | None:
    """A path that ``load_settings`` reads; None if the environment has all settings.

    Equal configurations have the same one, which lasts as long as this process.
    """
    if source is None:
        return None
    if isinstance(source, str | Path):
        return str(Path(source).absolute())
    config = LakeConfig.load(source)
    with _lock:
        path = next((path for known, path in _handed if known == config), None)
        if path is None:
            path = _written(config)
            _handed.append((config, path))
        return path


def _written(config: LakeConfig) -> str:
    if not hasattr(os, "memfd_create"):
        return _private_file(config)
    descriptor = os.memfd_create("pulsar-lake-settings", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    path = f"/proc/{os.getpid()}/fd/{descriptor}"
    _write(path, config)
    all_of_them = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, all_of_them)
    return path


def _private_file(config: LakeConfig) -> str:
    """Where there is no such memory: a file that is removed when this process ends in peace."""
    directory = Path(tempfile.mkdtemp(prefix="pulsar-lake-"))  # of mode 700
    atexit.register(_remove, directory, os.getpid())
    path = directory / "settings.json"
    path.touch(mode=0o600)
    _write(str(path), config)
    return str(path)


def _write(path: str, config: LakeConfig) -> None:
    Path(path).write_text(json.dumps(_plain(config)))


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends sooner
        shutil.rmtree(directory, ignore_errors=True)


def _after_fork() -> None:
    # What the parent has open is open here as well, but it is the parent's, and may end with it.
    global _lock
    _lock = Lock()
    _handed.clear()


os.register_at_fork(after_in_child=_after_fork)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        pairs = ((name, getattr(value, name)) for name in type(value).model_fields)
        return {name: _plain(inner) for name, inner in pairs if inner is not None}
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
