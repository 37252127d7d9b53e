"""Removes files that no reader can need any more. The only place that deletes a file.

A file goes if it was written before the window (``offload.vacuum_after``) began, and no version of
the table refers to it that was the newest at any time in the window. So a version stays readable
for the whole window after the commit that superseded it, however old its files are, and a file that
a task has written and not committed yet has the whole window to get into the log.

delta-rs's own vacuum is not used: its ``full`` mode decides by a file's age where the log has
forgotten when it was removed, it lists a file as often as it was ever removed, and it commits
twice.

Safety is in the order: the files are listed first, then the log. Ages are by the storage's clock,
of data files and of commits alike; ``storage_clock.py`` checks beforehand that this host's agrees.
Source: the Delta protocol's "Delta Log Entries".
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from offloader.output import UnusedFile
from offloader.parquet import is_data_file
from reader.errors import UnavailableError, plain_text
from reader.model import Topic
from reader.storage import Storage, is_temporary
from reader.table import TopicTable
from reader.table.log import read_commit

_COMMIT = re.compile(r"(\d{20})\.json")
_READERS = 8


def unused_files(storage: Storage, topic: Topic, before_ms: int) -> list[UnusedFile]:
    """What can go, if the window began at ``before_ms`` (since the epoch).

    Nothing where there is no table. Raises UnavailableError.
    """
    files = _data_files(storage, topic)
    commits, unfinished = _log(storage, topic)
    old = [one for one, at in (*files, *unfinished) if at < before_ms]
    table = TopicTable.open(storage, topic)
    if table is None:
        return []
    live = _plain(table.paths())
    candidates = [one for one in old if one.path not in live]
    if not candidates:
        return []
    used = _used_since(storage, table, commits, before_ms)
    return [] if used is None else [one for one in candidates if one.path not in used]


def remove(
    storage: Storage, topic: Topic, files: list[UnusedFile], *, raise_if_stopped: Callable[[], None]
) -> None:
    """Delete them. One that is gone already is another maintainer's. Raises UnavailableError.

    On S3, pyarrow leaves an empty object of the directory's name beside what it deletes.
    """
    filesystem, directory = storage.directory(topic)
    for one in files:
        raise_if_stopped()
        with _storage(f"{directory}/{one.path}") as path, suppress(FileNotFoundError):
            filesystem.delete_file(path)


def _data_files(storage: Storage, topic: Topic) -> list[tuple[UnusedFile, int]]:
    """(file, ms when it was written), of files of our own names; what lies deeper is not ours.

    And of what somebody was writing to HDFS, and has left.
    """
    return [
        (UnusedFile(name, int(info.size)), _written_ms(info))
        for name, info in _listed(storage, topic, "")
        if is_data_file(name) or is_temporary(name)
    ]


def _log(storage: Storage, topic: Topic) -> tuple[dict[int, int], list[tuple[UnusedFile, int]]]:
    """Version → ms when it was written, of the commits that clean-up has left; and unfinished ones,
    as ``_data_files`` has them."""
    commits, unfinished = {}, []
    for name, info in _listed(storage, topic, "/_delta_log"):
        if match := _COMMIT.fullmatch(name):
            commits[int(match[1])] = _written_ms(info)
        elif is_temporary(name):
            unfinished.append((UnusedFile(f"_delta_log/{name}", int(info.size)), _written_ms(info)))
    return commits, unfinished


def _used_since(
    storage: Storage, table: TopicTable, commits: dict[int, int], before_ms: int
) -> set[str] | None:
    """The files of all versions that were the newest at some time since.

    None: one of their commits is missing although it is younger, so nothing is certain.
    """
    # The last before all that are younger: times need not grow with versions.
    young = (version for version, at in commits.items() if at > before_ms)
    base = min(young, default=max(commits, default=-1) + 1) - 1
    if base >= 0 and base not in commits:
        return None
    used = _plain(table.paths())
    if base >= 0:
        oldest = TopicTable.open(storage, table.topic, base)
        if oldest is None:
            return None
        used |= _plain(oldest.paths())
    with ThreadPoolExecutor(_READERS) as pool:
        versions = range(base + 1, table.version + 1)
        for commit in pool.map(lambda v: read_commit(storage, table.topic, v), versions):
            if commit is None:
                return None
            used |= _plain(set(commit.adds))
    return used


def _plain(paths: set[str]) -> set[str]:
    """Paths in the log are URL-encoded."""
    return paths | {unquote(one) for one in paths}


def _listed(storage: Storage, topic: Topic, below: str) -> Iterator[tuple[str, pafs.FileInfo]]:
    """The files of one directory: name and info."""
    filesystem, directory = storage.directory(topic)
    with _storage(directory + below) as root:
        selector = pafs.FileSelector(root, allow_not_found=True, recursive=False)
        found = filesystem.get_file_info(selector)
    for info in found:
        if info.type == pafs.FileType.File:
            yield info.path.removeprefix(root).lstrip("/"), info


def _written_ms(info: pafs.FileInfo) -> int:
    """Without a time from the storage, a file counts as new."""
    return int(info.mtime_ns) // 1_000_000 if info.mtime_ns is not None else 1 << 62


@contextmanager
def _storage(path: str) -> Iterator[str]:
    try:
        yield path
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise UnavailableError(
            f"cannot remove unused files at {path}: {plain_text(error)}",
            hint="check storage.uri, storage.options and the permission to list and delete",
        ) from error
