"""What a snapshot says of the Delta table, which files it has, and when it is too old."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from pyiceberg.manifest import DataFile, ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from reader.errors import UnsupportedError

VERSION_KEY = "pulsarlake.delta-version"
_COMMIT_KEY = "pulsarlake.delta-commit"
_SINCE_KEY = "pulsarlake.delta-since"

_READERS = 8
MOST_SNAPSHOTS = 500
"""All of them are in each metadata file, which every commit writes anew."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The Delta version that a snapshot shows, and the id of the commit that made it."""

    version: int
    commit: str


def snapshot_properties(shown: Shown, since_ms: int) -> dict[str, str]:
    """Return what a snapshot says of Delta, in its summary.

    ``since_ms``: when the first version was committed that the snapshot before it lacks, ms since
    the epoch; 0: not known.
    """
    return {VERSION_KEY: str(shown.version), _COMMIT_KEY: shown.commit, _SINCE_KEY: str(since_ms)}


def shown_by(table: Table) -> Shown | None:
    """Return what the current snapshot shows; None without one, or with another writer's."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return None
    version = _said(snapshot, VERSION_KEY)
    return Shown(int(version), _said(snapshot, _COMMIT_KEY)) if version.isdigit() else None


def newest_of_ours(table: Table) -> Snapshot | None:
    """Return the last snapshot that says what it shows of Delta; others may have come since."""
    ours = [one for one in table.metadata.snapshots if _said(one, VERSION_KEY).isdigit()]
    return max(ours, key=lambda one: one.sequence_number or 0, default=None)


def live_files(table: Table, directory: str) -> dict[str, list[DataFile]]:
    """The current snapshot's files by their names in ``directory``, the Delta table's location.

    A file that lies elsewhere is another writer's, and has its whole location as name.
    Raises UnsupportedError where rows of files are deleted, which no set of files says.
    """
    snapshot = table.current_snapshot()
    manifests = snapshot.manifests(table.io) if snapshot is not None else []
    if any(one.content != ManifestContent.DATA for one in manifests):
        raise UnsupportedError(
            f"another writer has deleted rows of the Iceberg table {'.'.join(table.name())}",
            hint="only the offloader may change it: roll it back, or drop it from the catalog; "
            "it is made again from the Delta table",
        )

    def files(manifest: ManifestFile) -> list[DataFile]:
        entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        return [one.data_file for one in entries]

    found: dict[str, list[DataFile]] = {}
    with ThreadPoolExecutor(_READERS) as pool:
        for some in pool.map(files, manifests):
            for one in some:
                found.setdefault(one.file_path.removeprefix(directory + "/"), []).append(one)
    return found


def superseded(table: Table, before_ms: int) -> list[Snapshot]:
    """Return the snapshots superseded before ``before_ms`` (since the epoch), oldest first.

    And the oldest of more than ``MOST_SNAPSHOTS``. Not the current one, and none that a branch or a
    tag names.

    A snapshot is superseded when Delta's next version is committed, even if Iceberg follows later.
    From then on vacuum counts the time after which it deletes a file.
    """
    named = {one.snapshot_id for one in table.metadata.refs.values()}
    ordered = sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0)
    many = len(ordered) - MOST_SNAPSHOTS
    return [
        one
        for place, (one, after) in enumerate(pairwise(ordered))
        if one.snapshot_id not in named and (place < many or _superseded_ms(one, after) < before_ms)
    ]


def without_history(table: Table, but: Collection[Snapshot]) -> Table:
    """The same table as if it had no snapshots but its current one, those with a name, and these.

    To commit by: PyIceberg 0.12 copies all metadata at each change of a transaction, which with 500
    snapshots is most of a commit's time. What is committed are updates, and their requirements are
    of the current snapshot: the catalog applies them to all metadata there are.
    """
    metadata = table.metadata
    named = {one.snapshot_id for one in metadata.refs.values()}
    wanted = named | {one.snapshot_id for one in but} | {metadata.current_snapshot_id}
    few = [one for one in metadata.snapshots if one.snapshot_id in wanted]
    return Table(
        table.name(),
        metadata.model_copy(update={"snapshots": few, "snapshot_log": []}),
        table.metadata_location,
        table.io,
        table.catalog,
    )


def _superseded_ms(one: Snapshot, after: Snapshot) -> int:
    """When the Delta version that ``one`` shows was, at the earliest."""
    since = _said(after, _SINCE_KEY)
    known = int(since) if since.isdigit() else 0
    return min(after.timestamp_ms, known or one.timestamp_ms)


def _said(snapshot: Snapshot, key: str) -> str:
    return snapshot.summary.additional_properties.get(key, "") if snapshot.summary else ""
