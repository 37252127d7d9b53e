"""The storage: an object is written, read, listed and deleted, and a commit is conditional.

Two commits of one version must never both succeed: each would take the other's ledgers for its own.
A probe shows that a put to an existing object is refused (``Storage.require_exclusive_put``).
delta-rs lists the log before it puts a version, so only commits that race show whether the put is
conditional. Several start at once on one version of a scratch table, with the options that the
offloader commits with. Exactly one has to win, each time.

The scratch lies at ``<uri>/~check-…``: no tenant's directory has a ``~`` that two hexadecimal
digits do not follow (``Storage.table_uri``). It is deleted at the end; what a check left that was
killed, the next one deletes after an hour.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Barrier

import pyarrow as pa
import pyarrow.fs as pafs

from offloader.check.outcome import Finding, Waiting
from reader.background import in_thread
from reader.errors import UnavailableError, plain_text
from reader.storage import Storage

_RACERS = 4
_ROUNDS = 3
_START_SECONDS = 60.0
_PROBE = b"Written by pulsar-lake check; may be deleted.\n"
_SCRATCH = re.compile(r"~check-(\d+)-[0-9a-f]+")
_LEFT_SECONDS = 3600
_FIX = (
    "check storage.uri (is the bucket there?), [storage.options] (endpoint_url, region, keys) and "
    "the right to put, get, list and delete below it"
)


@dataclass(frozen=True, slots=True)
class StoredAt:
    """When an object was written: by this host before and after, and by the storage; ms.

    ``there_ms``: None where the storage does not say.
    """

    before_ms: int
    there_ms: int | None
    after_ms: int


def check_storage(
    storage: Storage,
    waiting: Waiting,
    *,
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    stored: Callable[[StoredAt], None] = lambda at: None,
) -> Finding:
    """``stored`` gets when the probe was written. Raises UnavailableError, which names the step."""
    waiting(storage.place)
    with _step(storage, "open"):
        filesystem, root = storage.filesystem()
    name = f"~check-{clock_ms() // 1000}-{uuid.uuid4().hex[:8]}"
    try:
        stored(_write_and_read(storage, filesystem, f"{root}/{name}", clock_ms))
        winners = [_race(storage, f"{storage.root}/{name}") for _ in range(_ROUNDS)]
    finally:
        with suppress(OSError, pa.ArrowException):
            filesystem.delete_dir(f"{root}/{name}")
    with _step(storage, "delete in"):
        if filesystem.get_file_info(f"{root}/{name}/probe").type != pafs.FileType.NotFound:
            filesystem.delete_file(f"{root}/{name}/probe")  # raises what it refused before
        _clean_up(filesystem, root, clock_ms() // 1000)
    if max(winners) > 1:
        return Finding.failed(
            f"{max(winners)} of {_RACERS} commits of one version succeeded at {storage.place}: "
            "its conditional put is none, so two offloaders would lose or double rows",
            "use a storage, or a version of it, that honours conditional puts (S3: "
            "If-None-Match: *; GCS: x-goog-if-generation-match: 0); and see that no proxy before "
            "it drops the header",
        )
    storage.require_exclusive_put()
    return Finding.ok(
        f"{storage.place}: written, read, listed and deleted; of {_RACERS} commits at once one "
        f"succeeds ({_ROUNDS} times)"
    )


@contextmanager
def _step(storage: Storage, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise UnavailableError(
            f"cannot {what} {storage.place}: {plain_text(error)}", hint=_FIX
        ) from error


def _write_and_read(
    storage: Storage, filesystem: pafs.FileSystem, directory: str, clock_ms: Callable[[], int]
) -> StoredAt:
    path = f"{directory}/probe"
    with _step(storage, "write to"):
        if isinstance(filesystem, pafs.LocalFileSystem):
            filesystem.create_dir(directory, recursive=True)
        before_ms = clock_ms()
        with filesystem.open_output_stream(path) as sink:
            sink.write(_PROBE)
        after_ms = clock_ms()
    with _step(storage, "read from"):
        with filesystem.open_input_stream(path) as source:
            content = source.read()
        if content != _PROBE:
            raise OSError(f"{path} has other bytes than were written")
    with _step(storage, "list"):
        listed = filesystem.get_file_info(pafs.FileSelector(directory))
        if [one.base_name for one in listed] != ["probe"]:
            raise OSError(f"{path} was written and is not listed")
    mtime_ns = listed[0].mtime_ns
    return StoredAt(before_ms, None if mtime_ns is None else mtime_ns // 1_000_000, after_ms)


def _race(storage: Storage, uri: str) -> int:
    """Return how many of several commits on one version succeed. Raises UnavailableError: none."""
    from deltalake import CommitProperties, DeltaTable, Field, Schema
    from deltalake.exceptions import DeltaError
    from deltalake.schema import PrimitiveType

    options = storage.delta_options()
    schema = Schema([Field("a", PrimitiveType("long"))])
    start = Barrier(_RACERS)

    def commit(table: DeltaTable) -> Exception | None:
        start.wait(_START_SECONDS)
        try:
            table.create_write_transaction(
                [],
                mode="append",
                schema=schema,
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except (DeltaError, OSError, ValueError, RuntimeError) as error:
            return error
        return None

    try:
        DeltaTable.create(uri, schema, mode="ignore", storage_options=options)
        tables = [DeltaTable(uri, storage_options=options) for _ in range(_RACERS)]
    except (DeltaError, OSError, ValueError, RuntimeError) as error:
        raise _no_commit(storage, error) from error
    futures = [in_thread(partial(commit, one)) for one in tables]
    errors = [one.result() for one in futures]
    winners = sum(one is None for one in errors)
    if not winners:
        raise _no_commit(storage, next(one for one in errors if one is not None))
    return winners


def _no_commit(storage: Storage, error: Exception) -> UnavailableError:
    return UnavailableError(
        f"cannot commit to a Delta table at {storage.place}: {plain_text(error)}",
        hint=f"{_FIX}; and that it knows conditional puts",
    )


def _clean_up(filesystem: pafs.FileSystem, root: str, now_seconds: int) -> None:
    """Delete what earlier checks left that were killed."""
    for one in filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True)):
        match = _SCRATCH.fullmatch(one.base_name)
        if match and now_seconds - int(match[1]) > _LEFT_SECONDS:
            filesystem.delete_dir(one.path)
