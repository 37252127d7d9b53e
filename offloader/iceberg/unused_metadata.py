"""Iceberg's own files that nothing refers to any more, removed: the only place that deletes one.

Snapshots that have expired leave manifests and their lists, each commit leaves the metadata before
it, and an attempt that was killed or refused leaves what it had written. A file goes if no snapshot
that the table still has refers to it, and if it was written

* before ``keep`` began: so long has who plans a query to read what an older snapshot refers to;
* before the snapshot that is current now was made, by an hour at least: whoever wrote it for a
  commit of its own began from an older snapshot, so that commit can never land. When that was, the
  storage says, of the snapshot's list of manifests: whoever's clock is wrong deletes too early what
  only old snapshots had, and never what a commit that is on its way has written.

The files are listed first, and then the table is loaded. Only the table's own metadata directory,
and only names that PyIceberg or a catalog gives, and what somebody was writing to HDFS, and has
left (``reader.storage.is_temporary``); Parquet files are the Delta table's, and their
vacuum's (``offloader/commit/vacuum.py``).
"""

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow.fs as pafs
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from offloader.iceberg.storage_files import path_below
from reader.storage import Storage, is_temporary

_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OURS = re.compile(
    rf"{_UUID}-m\d+\.avro|snap-\d+-\d+-{_UUID}\.avro|\d+-{_UUID}(\.gz)?\.metadata\.json"
)
_MARGIN_MS = 3_600_000
_READERS = 8


def remove_unused(
    storage: Storage,
    directory: str,
    load: Callable[[], Table],
    *,
    before_ms: int,
    raise_if_stopped: Callable[[], None],
) -> int:
    """How many were deleted. ``directory``: the metadata's, below the storage's root.

    ``before_ms``: when ``keep`` began, ms since the epoch. Raises what the storage raises.
    """
    filesystem, root = storage.filesystem()
    selector = pafs.FileSelector(f"{root}/{directory}", allow_not_found=True)
    found = {
        info.base_name: int(info.mtime_ns) // 1_000_000
        for info in filesystem.get_file_info(selector)
        if info.type == pafs.FileType.File
        and info.mtime_ns is not None
        and (_OURS.fullmatch(info.base_name) or is_temporary(info.base_name))
    }
    table = load()
    current = table.current_snapshot()
    if current is None:
        return 0
    made_ms = found.get(current.manifest_list.rpartition("/")[2])
    if made_ms is None:
        return 0
    before_ms = min(before_ms, made_ms - _MARGIN_MS)
    old = [name for name, written in found.items() if written < before_ms]
    if not old:
        return 0
    raise_if_stopped()
    used = _used(storage, directory, table)
    unused = [name for name in old if name not in used]
    for name in unused:
        raise_if_stopped()
        with suppress(FileNotFoundError):  # another offloader's turn
            filesystem.delete_file(f"{root}/{directory}/{name}")
    return len(unused)


def _used(storage: Storage, directory: str, table: Table) -> set[str]:
    """Names in the directory that the table, or any of its snapshots, refers to."""
    metadata = table.metadata
    locations = {table.metadata_location, *(one.metadata_file for one in metadata.metadata_log)}
    locations |= {one.manifest_list for one in metadata.snapshots}

    def manifests(snapshot: Snapshot) -> Iterable[str]:
        return [one.manifest_path for one in snapshot.manifests(table.io)]

    with ThreadPoolExecutor(_READERS) as pool:
        for some in pool.map(manifests, metadata.snapshots):
            locations.update(some)
    paths = (path_below(storage, one) for one in locations)
    return {one.removeprefix(directory + "/") for one in paths if one is not None}
