"""A table's log, commit by commit: ``_delta_log/<version>.json``. The one place that reads it.

Not by delta-rs's ``history``, which lists the log each time and keeps the interpreter's lock while
it waits for the storage. Format: the Delta protocol's "Delta Log Entries" and "Commit Provenance
Information".
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from reader.background import in_thread
from reader.errors import CorruptError, UnavailableError, plain_text
from reader.model import Topic
from reader.storage import Storage
from reader.table.offloaded_ledgers import LEDGERS_KEY, OffloadedLedger, decode_ledgers

COMMIT_KEY = "pulsarlake.commit"
"""Every commit of ours has an id of that name; one without is an external writer's."""

_SIDE_BY_SIDE = 8
_LONGEST_BLOCK = 64


@dataclass(frozen=True)  # without slots: what is decoded is kept
class LoggedCommit:
    """One version of the log.

    ``at_ms``: ms since the epoch, by the writer's clock. ``operation`` and ``engine``: as the
    writer names it and itself. ``id``: ours; "" of an external writer. ``ledgers_text``: of what it
    added, as the log has it; "" of none. ``adds``: paths as the log has them, URL-encoded;
    ``removes``: whether it took files out. ``info``: all of its ``commitInfo``. ``transactions``:
    its ``txn``, version by id. ``redefines``: whether it says anew what the table is (columns,
    properties, protocol).
    """

    version: int
    at_ms: int
    operation: str
    engine: str
    id: str
    ledgers_text: str
    adds: tuple[str, ...]
    removes: bool
    info: Mapping[str, Any]
    transactions: Mapping[str, int] = field(default_factory=dict)
    redefines: bool = False

    @property
    def ledgers(self) -> tuple[OffloadedLedger, ...]:
        """What it added, if anything, decoded when first asked for: few readers want that.

        Raises CorruptError.
        """
        # Without a lock, which a child of a fork might wait for: to decode twice does no harm.
        found: tuple[OffloadedLedger, ...] | None = self.__dict__.get("_decoded")
        if found is None:
            found = tuple(decode_ledgers(self.ledgers_text)) if self.ledgers_text else ()
            self.__dict__["_decoded"] = found
        return found


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that a commit added: its path as the log has it, its size in bytes, and its
    statistics (JSON: the Delta protocol's "Per-file Statistics"), "" of none."""

    path: str
    size: int
    statistics: str


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What one commit did to the table's files; the others as in ``LoggedCommit``."""

    version: int
    at_ms: int
    id: str
    added: tuple[AddedFile, ...]
    removed: tuple[str, ...]
    redefines: bool


def read_commit(storage: Storage, topic: Topic, version: int) -> LoggedCommit | None:
    """One commit; None where clean-up has removed it, or it is not made yet.

    Raises UnavailableError when the storage does not answer, CorruptError for what is no commit.
    """
    return _read(storage, topic, version, _commit)


def read_file_changes(storage: Storage, topic: Topic, version: int) -> FileChanges | None:
    """The same commit, for its files. None, and raises, as ``read_commit``."""
    return _read(storage, topic, version, _file_changes)


_Parsed = TypeVar("_Parsed")


def _read(
    storage: Storage,
    topic: Topic,
    version: int,
    parse: Callable[[int, Sequence[Mapping[str, Any]]], _Parsed],
) -> _Parsed | None:
    filesystem, directory = storage.directory(topic)
    path = f"{directory}/_delta_log/{version:020d}.json"
    try:
        with filesystem.open_input_stream(path) as source:
            lines = source.read().splitlines()
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException) as error:
        raise UnavailableError(
            f"cannot read {path}: {plain_text(error)}", hint="check storage.uri and storage.options"
        ) from error
    try:
        return parse(version, [json.loads(line) for line in lines])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptError(f"{path} is not a commit: {plain_text(error)}") from error


def _commit(version: int, actions: Sequence[Mapping[str, Any]]) -> LoggedCommit:
    info = _info(actions)
    return LoggedCommit(
        version=version,
        at_ms=int(info.get("timestamp", 0)),
        operation=str(info.get("operation", "")),
        engine=str(info.get("engineInfo", "")),
        id=str(info.get(COMMIT_KEY, "")),
        ledgers_text=str(info.get(LEDGERS_KEY, "")),
        adds=tuple(str(one["add"]["path"]) for one in actions if "add" in one),
        removes=any("remove" in one for one in actions),
        info=info,
        transactions={
            str(one["txn"]["appId"]): int(one["txn"]["version"]) for one in actions if "txn" in one
        },
        redefines=_redefines(actions),
    )


def _file_changes(version: int, actions: Sequence[Mapping[str, Any]]) -> FileChanges:
    info = _info(actions)
    added = [one["add"] for one in actions if "add" in one]
    return FileChanges(
        version=version,
        at_ms=int(info.get("timestamp", 0)),
        id=str(info.get(COMMIT_KEY, "")),
        added=tuple(
            AddedFile(str(one["path"]), int(one["size"]), str(one.get("stats") or ""))
            for one in added
        ),
        removed=tuple(str(one["remove"]["path"]) for one in actions if "remove" in one),
        redefines=_redefines(actions),
    )


def _info(actions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return next((dict(one["commitInfo"]) for one in actions if "commitInfo" in one), {})


def _redefines(actions: Sequence[Mapping[str, Any]]) -> bool:
    return any("metaData" in one or "protocol" in one for one in actions)


def newest_first(read: Callable[[int], LoggedCommit | None], newest: int) -> Iterator[LoggedCommit]:
    """The commits from version ``newest`` down to the first that ``read`` does not find.

    Read a block at a time, some of it side by side, each block twice as long as the one before:
    who stops early has read little. Raises what ``read`` raises.
    """
    length = 1
    while newest >= 0:
        for one in _block(read, range(newest, max(-1, newest - length), -1)):
            if one is None:
                return
            yield one
        newest -= length
        length = min(2 * length, _LONGEST_BLOCK)


def _block(
    read: Callable[[int], LoggedCommit | None], versions: Sequence[int]
) -> list[LoggedCommit | None]:
    """The commits of ``versions``; None for one that is missing, and for any behind that."""
    found: dict[int, LoggedCommit] = {}
    left = iter(versions)
    over = False

    def work() -> None:  # several, and each takes the next version
        nonlocal over
        for version in left:
            one = None if over else read(version)
            if one is None:
                return
            found[version] = one

    try:
        for working in [in_thread(work) for _ in range(min(_SIDE_BY_SIDE, len(versions)))]:
            working.result()
    finally:
        over = True
    return [found.get(version) for version in versions]


def recorded_ledgers(commits: Iterable[LoggedCommit]) -> list[OffloadedLedger]:
    """What commits, newest first, say of their ledgers, oldest first."""
    return [one for commit in reversed(list(commits)) for one in commit.ledgers]


def records_upto(
    commits: Iterable[LoggedCommit], ledgers: Mapping[int, int]
) -> dict[int, OffloadedLedger]:
    """What ``commits``, newest first, say of one of the ``ledgers`` of each partition (by index).

    Its own record; or that of the loss which it is part of; or the last one before it, where no
    commit names it. A partition is left out of which they do not reach back so far. Read only as
    far back as need be: watermarks grow.
    """
    found: dict[int, OffloadedLedger] = {}
    losses: dict[int, OffloadedLedger] = {}  # of which nobody knows the first: it lies further back
    for commit in commits if ledgers else ():
        ours: dict[int, list[OffloadedLedger]] = {}
        for one in commit.ledgers:
            if one.partition in ledgers and one.partition not in found:
                ours.setdefault(one.partition, []).append(one)
        for partition, records in ours.items():
            upto = [
                place for place, one in enumerate(records) if 0 <= one.ledger <= ledgers[partition]
            ]
            behind = records[upto[-1] + 1 :] if upto else records
            if behind:
                losses.pop(partition, None)
                if behind[0].ledger < 0:
                    losses[partition] = behind[0]
            if upto:
                last = records[upto[-1]]
                own = last.ledger == ledgers[partition]
                found[partition] = last if own else losses.get(partition, last)
        if len(found) == len(ledgers):
            break
    return found
