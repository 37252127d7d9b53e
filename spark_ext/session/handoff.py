"""Passing a configuration to other processes: the planner and Spark's Python workers.

They get a path, never values: settings hold secrets, and Spark shows its options in its UI and in
plans. For a configuration file that is its path; a configuration made in code is written to a
private file, which is deleted when this process ends.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from reader.errors import ConfigurationError
from spark_ext.session.settings import LakeConfig

__all__ = ["load_settings", "settings_file"]


def load_settings(path: str | None) -> LakeConfig:
    """Load what ``settings_file`` wrote, or a user's TOML file; None: the environment alone."""
    if not path or not path.endswith(".json"):
        return LakeConfig.load(path or None)
    try:
        return LakeConfig.load(json.loads(Path(path).read_text()))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read the settings {path}: {error}") from error


def settings_file(source: LakeConfig | Mapping[str, Any] | str | Path | None) -> str | None:
    """A path that ``load_settings`` reads; None if the environment has all settings."""
    if source is None:
        return None
    if isinstance(source, str | Path):
        return str(Path(source).absolute())
    config = LakeConfig.load(source)
    # A directory of mode 700, removed when this process ends.
    directory = Path(tempfile.mkdtemp(prefix="pulsar-lake-"))
    atexit.register(_remove, directory, os.getpid())
    path = directory / "settings.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(_plain(config)))
    return str(path)


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends sooner
        shutil.rmtree(directory, ignore_errors=True)


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
