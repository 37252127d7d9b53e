"""Ledgers that lie where ``[[tiered]]`` says: opened once a process, read in windows.

Which driver, bucket or directory a ledger was offloaded to is in Pulsar's metadata store alone. So
it is looked for in each place that may have ledgers of its namespace, in the settings' order: the
uuid in an object's name makes sure that it is found in the right one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import pyarrow.fs as pafs

from reader.config import TieredConfig
from reader.errors import (
    ConfigurationError,
    CorruptError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
    UnsupportedError,
    plain_text,
)
from reader.kernels.array_types import Bytes
from reader.model import EntryBlock, OffloadContext, Partition
from reader.prefetch import Prefetched
from reader.storage import Storage, open_storage, scheme_of
from reader.tiered.jcloud_blocks import JcloudLedger
from reader.tiered.jcloud_index import parse_index
from reader.tiered.map_file import (
    MapFile,
    map_file,
    map_file_without_index,
    metadata_walk,
    parse_data_header,
)
from reader.tiered.object_names import ObjectNames, filesystem_names, jcloud_names
from reader.tiered.object_reads import ObjectReads
from reader.tiered.places import Places
from reader.tiered.walk import Found, Walk

Range = tuple[int, OffloadContext, int, int]
"""Ledger id, where it is, first and last entry (inclusive)."""

WINDOW = 4 << 20
"""Bytes of a request."""
WINDOWS_AT_ONCE = 4
"""Of a read: asked for, or waiting to be walked through."""
_LEAST_WINDOW = 64 << 10
_BLOCK = 4 << 20
"""Bytes of a block of entries, about: as a source's others have."""
_HEADER = 64 << 10
_MOST_NEEDED = 512 << 20
"""Bytes that are kept for what has to be whole: far more than BookKeeper takes for an entry."""
_MOST_INDEX = 64 << 20
_MOST_OPEN = 64
"""Ledgers; with each ``places.MOST_BYTES`` at the most."""
_FILESYSTEM_SCHEMES = ("", "file", "hdfs", "viewfs")


class TieredLedgers:
    """Of the places of one configuration. Thread-safe; not to be used in a forked child."""

    def __init__(self, places: Sequence[TieredConfig]) -> None:
        self._configured = tuple(places)
        self._storages: dict[int, Storage] = {}
        self._opened: OrderedDict[tuple[Partition, int, str], _OpenLedger] = OrderedDict()
        self._lock = threading.Lock()

    def read(
        self, partition: Partition, ledger_id: int, context: OffloadContext, first: int, last: int
    ) -> Generator[EntryBlock]:
        """Entries first..last (inclusive) of a ledger, ascending, without a gap, in blocks.

        Raises NotFoundError where no place has its objects, UnavailableError where one does not
        answer, CorruptError for a damaged object, UnsupportedError for one that is not handled and
        where no place is named for the namespace, ConfigurationError for one that cannot be used.
        """
        return self.read_all(partition, [(ledger_id, context, first, last)])

    def read_all(self, partition: Partition, ranges: Sequence[Range]) -> Generator[EntryBlock]:
        """``read`` of each range, one after the other: the next is opened meanwhile."""
        ranges = [one for one in ranges if one[2] <= one[3]]
        if len(ranges) < 2:
            for one in ranges:
                yield from self._read(partition, one)
            return
        with Prefetched(self._open_all(partition, ranges), 2) as opened:
            for ledger, (_, _, first, last) in zip(opened, ranges, strict=False):
                yield from self._entries(partition, ledger, first, last)

    def salvaged(
        self, partition: Partition, ledger_id: int, context: OffloadContext
    ) -> SalvagedLedger:
        """A ledger that is declared lost, as far as its objects can be read: what they say of
        themselves as a whole need not be right.

        Raises as ``read``, also where nothing of them can be read.
        """
        try:
            return SalvagedLedger(self._find(partition, ledger_id, context, checked=False))
        except PulsarLakeError as error:
            raise _about(ledger_id, partition, error, lost=True) from error

    def _open_all(self, partition: Partition, ranges: Sequence[Range]) -> Generator[_OpenLedger]:
        for ledger_id, context, _, _ in ranges:
            yield self._open(partition, ledger_id, context)

    def _read(self, partition: Partition, one: Range) -> Iterator[EntryBlock]:
        ledger_id, context, first, last = one
        yield from self._entries(partition, self._open(partition, ledger_id, context), first, last)

    def _entries(
        self, partition: Partition, ledger: _OpenLedger, first: int, last: int
    ) -> Iterator[EntryBlock]:
        try:
            with closing(ledger.read(first, last)) as blocks:
                yield from blocks
        except PulsarLakeError as error:
            self._forget(ledger)
            raise _about(ledger.ledger_id, partition, error) from error
        finally:  # also of a read that nobody wants to its end
            self._bound()

    # -- which ledgers are open ----------------------------------------------------------------

    def _open(self, partition: Partition, ledger_id: int, context: OffloadContext) -> _OpenLedger:
        key = (partition, ledger_id, context.uuid)
        with self._lock:
            found = self._opened.get(key)
            if found is not None:
                self._opened.move_to_end(key)
                return found
        try:
            made = self._find(partition, ledger_id, context)
        except PulsarLakeError as error:
            raise _about(ledger_id, partition, error) from error
        with self._lock:
            return self._opened.setdefault(key, made)

    def _forget(self, ledger: _OpenLedger) -> None:
        with self._lock:
            for key, one in list(self._opened.items()):
                if one is ledger:
                    del self._opened[key]

    def _bound(self) -> None:
        with self._lock:
            while len(self._opened) > _MOST_OPEN:
                self._opened.popitem(last=False)

    def _find(
        self, partition: Partition, ledger_id: int, context: OffloadContext, *, checked: bool = True
    ) -> _OpenLedger:
        topic = partition.topic
        missing: list[str] = []
        silent: list[str] = []
        for number, place in enumerate(self._configured):
            if not place.has(topic.tenant, topic.namespace):
                continue
            storage = self._storage(number, place)
            is_jcloud = format_of(place) == "jcloud"
            try:
                if is_jcloud:
                    jcloud = jcloud_names(ledger_id, context)
                    return _open_jcloud(storage, ledger_id, jcloud, checked=checked)
                names = filesystem_names(partition, ledger_id, context)
                return _open_map_file(storage, ledger_id, names, checked=checked)
            except NotFoundError as error:
                missing.append(error.message)
                if not checked and not _has_anything(storage):
                    silent.append(f"{storage.place} is empty, or not there: is it mounted?")
            except UnavailableError as error:  # another may have it, and the uuid makes it right
                silent.append(error.message)
        if silent:
            raise UnavailableError("; ".join([*silent, *missing]))
        if missing:
            raise NotFoundError("; ".join(missing))
        raise UnsupportedError(
            f"no place is named for ledgers of {topic.tenant}/{topic.namespace}",
            hint="name the bucket or directory of Pulsar's tiered storage in [[tiered]]",
        )

    def _storage(self, number: int, place: TieredConfig) -> Storage:
        with self._lock:
            if number not in self._storages:
                try:
                    self._storages[number] = open_storage(place.storage)
                except ConfigurationError as error:
                    raise ConfigurationError(
                        f"[[tiered]] {place.uri}: {error.message}", hint=error.hint
                    ) from error
            return self._storages[number]


def _has_anything(storage: Storage) -> bool:
    """Whether a place without a ledger's objects is there at all. Raises UnavailableError."""
    try:
        filesystem, root = storage.filesystem()
        if isinstance(filesystem, pafs.LocalFileSystem):  # what is not mounted is empty
            return bool(filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True)))
        return bool(filesystem.get_file_info(root).type == pafs.FileType.Directory)
    except OSError as error:
        raise UnavailableError(f"cannot read {storage.place}: {plain_text(error)}") from error


def format_of(place: TieredConfig) -> str:
    """By which drivers the objects of a place were written: jcloud or filesystem."""
    of_scheme = "filesystem" if scheme_of(place.uri) in _FILESYSTEM_SCHEMES else "jcloud"
    return place.format or of_scheme


def _about(
    ledger_id: int, partition: Partition, error: PulsarLakeError, *, lost: bool = False
) -> PulsarLakeError:
    """The same error, which says of which ledger it is; ``lost``: one that is declared so."""
    hint = error.hint
    if lost and isinstance(error, UnsupportedError):
        hint = hint or (
            "this release cannot read it, which is no loss; if it is damaged there, and for good, "
            "move it away: then it is as one that is gone"
        )
    elif isinstance(error, (CorruptError, NotFoundError)):
        hint = hint or (
            f"if it cannot be restored, pulsar.lost_ledgers = [{ledger_id}] declares it lost: "
            "docs/operations.md"
        )
    return type(error)(
        f"ledger {ledger_id} of {partition}, in Pulsar's tiered storage: {error.message}",
        hint=hint,
        context=error.context,
    )


# -- one ledger ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OpenLedger:
    """``content``: what its index says; ``checked``: whether that has to be so of the whole."""

    ledger_id: int
    data: ObjectReads
    content: JcloudLedger | MapFile
    checked: bool = True
    places: Places = field(default_factory=Places)

    def read(self, first: int, last: int) -> Generator[EntryBlock]:
        """Raises as ``TieredLedgers.read``."""
        end = self.content.end
        if last > end.last_entry:
            raise CorruptError(f"{self.data} has entries up to {end.last_entry}, and not to {last}")
        size = 0
        with closing(self._found(first, last)) as found:
            for one, is_last in found:
                self.places.add(one)
                size += int(one.lengths[max(0, first - one.first) :].sum())
                whole = self.checked and is_last and (first, last) == (0, end.last_entry)
                if whole and size != end.length:
                    raise CorruptError(
                        f"{self.data} has {size} bytes of entries, and not {end.length}"
                    )
                yield from _blocks(self.ledger_id, one, first)

    def _found(self, first: int, last: int) -> Generator[tuple[Found, bool]]:
        """What a walk gives, and whether it is the last; checked to be all before that comes."""
        walk = self.content.walk(first, last, self.places.before(first))
        rest = np.empty(0, np.uint8)
        waiting: Found | None = None
        with closing(self._windows(walk, last)) as windows:
            for window in windows:
                rest = np.concatenate([rest, window]) if len(rest) else window
                at = -1
                while at < walk.at and 0 < walk.need <= len(rest):
                    at = walk.at
                    for one in walk.take(rest):
                        if waiting is not None:
                            yield waiting, False
                        waiting = one
                    rest = rest[walk.at - at :]
                if not walk.need:
                    break
                _check_need(self.data, walk)
        is_end = self.checked and last == self.content.end.last_entry
        if walk.need or waiting is None:
            raise CorruptError(f"{self.data} ends before entry {last}")
        if is_end and walk.at != self.data.size:
            raise CorruptError(f"{self.data} goes on behind the ledger's last entry")
        yield waiting, True

    def _windows(self, walk: Walk, last: int) -> Generator[Bytes]:
        """The object's bytes from where the walk begins, to its end at the most."""
        after = self.places.of(last + 1)
        if after is not None:
            expected = after - walk.at
        else:
            entries = self.content.end.last_entry + 1
            expected = (last + 1 - walk.begins_with) * self.data.size // entries
            expected += expected // 8 + _LEAST_WINDOW
        end = min(walk.end, self.data.size)
        at = min(walk.at + expected, end)
        with closing(self._side_by_side(walk.at, at)) as windows:
            yield from windows
        more = _LEAST_WINDOW
        while at < end:
            size = min(WINDOW, more, end - at)
            yield self.data.read(at, size)
            at += size
            more *= 2

    def _side_by_side(self, at: int, end: int) -> Generator[Bytes]:
        """These bytes, by several requests at a time: one alone is slow, from a store far away."""
        windows = [(begin, min(WINDOW, end - begin)) for begin in range(at, end, WINDOW)]
        if len(windows) < 2:
            for begin, size in windows:
                yield self.data.read(begin, size)
            return
        pool = ThreadPoolExecutor(min(len(windows), WINDOWS_AT_ONCE), "tiered-window")
        asked: deque[Future[Bytes]] = deque()
        try:
            for begin, size in windows:
                if len(asked) == WINDOWS_AT_ONCE:
                    yield asked.popleft().result()
                asked.append(pool.submit(self.data.read, begin, size))
            while asked:
                yield asked.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


class SalvagedLedger:
    """A ledger that is declared lost (``reader.sources.salvage``); for one thread."""

    def __init__(self, ledger: _OpenLedger) -> None:
        self._ledger = ledger

    def read(self, first: int, last: int) -> Generator[EntryBlock]:
        """Raises as ``TieredLedgers.read``."""
        return self._ledger.read(first, last)

    def begin_after(self, entry: int, error: CorruptError | NotFoundError) -> int | None:
        """The next place that the index names, unless the object itself is gone."""
        return None if isinstance(error, NotFoundError) else self._ledger.content.begin_after(entry)


def _blocks(ledger_id: int, found: Found, first: int) -> Iterator[EntryBlock]:
    """Those from entry ``first`` on, in blocks of a size that is good to go on with."""
    begin = max(0, first - found.first)
    ends = found.offsets + found.lengths
    while begin < len(found.offsets):
        upto = int(np.searchsorted(ends, int(found.offsets[begin]) + _BLOCK, "right"))
        stop = max(begin + 1, upto)
        yield EntryBlock(
            ledger_id,
            np.arange(found.first + begin, found.first + stop, dtype=np.int64),
            found.offsets[begin:stop],
            found.lengths[begin:stop],
            found.arena,
        )
        begin = stop


def _open_jcloud(
    storage: Storage, ledger_id: int, names: ObjectNames, *, checked: bool
) -> _OpenLedger:
    index = ObjectReads(storage, names.index)
    content = JcloudLedger(parse_index(_whole(index)))
    data = ObjectReads(storage, names.data)
    if checked and data.size != content.index.data_length:
        raise CorruptError(f"{data} has {data.size} bytes, and not {content.index.data_length}")
    return _OpenLedger(ledger_id, data, content, checked)


def _open_map_file(
    storage: Storage, ledger_id: int, names: ObjectNames, *, checked: bool
) -> _OpenLedger:
    data = ObjectReads(storage, names.data)
    header = parse_data_header(data.read(0, min(_HEADER, data.size)).tobytes())
    walk = metadata_walk(header, data.size)
    size, found = _HEADER, list[Found]()
    while walk.need and not found:
        _check_need(data, walk)
        size = max(size, walk.need)
        found += walk.take(data.read(walk.at, min(size, data.size - walk.at)))
        if size >= data.size - walk.at and not found:
            raise CorruptError(f"{data} ends before its first record does")
        size *= 2
    (one,) = found
    metadata = one.arena[int(one.offsets[0]) :][: int(one.lengths[0])].tobytes()
    try:
        index = _whole(ObjectReads(storage, names.index))
        content = map_file(header, data.size, metadata, index)
    except (CorruptError, NotFoundError, UnsupportedError):
        if checked:
            raise
        content = map_file_without_index(header, data.size, metadata)
    return _OpenLedger(ledger_id, data, content, checked)


def _check_need(data: ObjectReads, walk: Walk) -> None:
    if walk.need > _MOST_NEEDED:
        raise CorruptError(f"{data} says at {walk.at} that {walk.need} bytes belong together")


def _whole(index: ObjectReads) -> bytes:
    if index.size > _MOST_INDEX:
        raise CorruptError(f"{index} has {index.size} bytes, which no index has")
    return index.read(0, index.size).tobytes()
