"""The folder for what is fetched or made once: jars, and Spark's warehouse."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reader.errors import ConfigurationError
from reader.private_directory import check_private, make_private


def cache_home() -> Path:
    """``$PULSAR_LAKE_CACHE``, else ``pulsar-lake`` in the user's cache folder."""
    given = os.environ.get("PULSAR_LAKE_CACHE")
    return Path(given).expanduser().absolute() if given else _user_cache()


def jars_folder() -> Path:
    """Where jars are, of all versions; it need not be there yet."""
    return cache_home() / "jars"


def warehouse() -> Path:
    """Where tables go that are given no place, in the cache: Spark has it in the working directory.

    In the user's own cache folder where ``cache_home`` cannot be written, as in an image.
    """
    for home in (cache_home(), _user_cache()):
        folder = home / "warehouse"
        with suppress(OSError):
            make_private(folder, 0o755)
        if os.access(folder, os.W_OK):
            return folder
    return cache_home() / "warehouse"


def open_folder(folder: Path, *, create: bool) -> None:
    """Raises ConfigurationError where others may write to the folder or the one above it.

    ``create``: make both if they are not there; else what is not there is no error.
    """
    try:
        if create:
            make_private(folder, 0o755)
        for one in (folder.parent, folder):
            with suppress(FileNotFoundError):
                check_private(one)
    except OSError as error:
        raise ConfigurationError(
            f"the folder of Spark's jars {folder} cannot be used: {error.strerror}",
            hint="set PULSAR_LAKE_CACHE to a folder that only you can write",
        ) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time fills the folder; others wait."""
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "pulsar-lake"
