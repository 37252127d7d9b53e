"""Bookies without sockets, and a clock that only waits advance."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reader.bookkeeper.reads import BookieHealth, LedgerReads, SilentBookies
from reader.bookkeeper.reads.block_planner import Range
from reader.bookkeeper.reads.read_messages import (
    Arrival,
    BookieFailure,
    Deliver,
    Disconnect,
    EntryAnswers,
    EntryRead,
    RangeAnswer,
    ReadKind,
    Send,
    Wait,
)
from reader.bookkeeper.v2 import BatchReadHeader
from reader.errors import UnavailableError
from reader.model import EntryBlock

ENTRY, RANGE = ReadKind.ENTRY, ReadKind.RANGE


@dataclass(frozen=True)
class Reply:
    """An answer: an entry as it is stored, or entries behind their sizes; or a status.

    ``after``: seconds until it arrives. ``offset``: added to the request's number. ``trickle``:
    seconds between two parts of it, and bytes of each.
    """

    body: bytes | None = None
    status: int = 0
    after: float = 0.0
    offset: int = 0
    trickle: tuple[float, int] | None = None


@dataclass(frozen=True)
class Broken:
    """The connection breaks. ``in_order``: as when the bookie closes it."""

    in_order: bool = True
    why: str = "closed the connection"


BREAKS = Broken()

Answers = Reply | Broken | Sequence[Reply] | None
Replies = Callable[..., Reply]
Script = Callable[..., Answers]
"""What a bookie does on (ledger, entry), or on (ledger, first entry, entries, bytes at most)."""


@dataclass
class _Event:
    time: float
    bookie: str
    kind: ReadKind
    byte_count: int
    request: int = 0
    reply: Reply | Broken | None = None


@dataclass
class MemoryBookies:
    """Performs the actions of ``LedgerReads``. A bookie without a script refuses connections.

    ``now``: seconds. ``asked``: entries, and ``ranges`` (first, entries), by bookie. ``opened``:
    connections, by bookie. ``most``: requests in flight at once, by bookie.
    """

    entry_scripts: Mapping[str, Script]
    range_scripts: Mapping[str, Script] = field(default_factory=dict)
    timeout: float = 10.0
    password: bytes = b""
    silent: SilentBookies = field(default_factory=SilentBookies)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.health = BookieHealth(self.timeout, self.silent)
        self.health.advance(self.now)
        self.asked: dict[str, list[int]] = {name: [] for name in self.entry_scripts}
        self.ranges: dict[str, list[tuple[int, int]]] = {name: [] for name in self.range_scripts}
        self.opened: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.waits: list[float] = []
        self.in_flight_at_first_wait = 0
        self._numbers = itertools.count(1)
        self._connections: set[tuple[str, ReadKind]] = set()
        self._kept: set[tuple[str, ReadKind]] = set()
        self._answered: set[tuple[str, ReadKind]] = set()
        self._events: list[_Event] = []

    def resume(self) -> None:
        """The connections were idle for a while."""
        self._kept = set(self._connections)

    def new_client(self) -> None:
        """The next reads are those of another client of the process."""
        self.health = BookieHealth(self.timeout, self.silent)
        for bookie in {bookie for bookie, _ in self._connections}:
            self._disconnect(bookie)

    def read(self, *ranges: Range, block_bytes: int = 2000) -> Iterator[EntryBlock]:
        """The blocks of some ranges."""
        return self.read_ranges(ranges, block_bytes)

    def read_ranges(self, ranges: Iterable[Range], block_bytes: int) -> Iterator[EntryBlock]:
        reads = LedgerReads(
            ranges, self.health, self._numbers, block_bytes=block_bytes, password=self.password
        )
        try:
            while (action := reads.next_action(self.now)) is not None:
                if isinstance(action, Deliver):
                    yield action.block
                elif isinstance(action, Wait):
                    for event in self._wait(action):
                        reads.receive(event, self.now)
                    reads.end_wait(self.now)
                elif isinstance(action, Disconnect):
                    self._disconnect(action.bookie)
                elif (failure := self._send(action)) is not None:
                    reads.receive(failure, self.now)
        finally:
            for bookie in reads.unanswered_bookies():
                self._disconnect(bookie)

    # -- sending ---------------------------------------------------------------------------------

    def _send(self, action: Send) -> BookieFailure | None:
        bookie, kind = action.bookie, action.kind
        scripts = self.entry_scripts if kind is ENTRY else self.range_scripts
        if bookie not in {**self.entry_scripts, **self.range_scripts}:
            return self._failure(bookie, kind, Broken(False, "refused"))
        if (bookie, kind) not in self._connections:
            self._connections.add((bookie, kind))
            self.opened[bookie] += 1
        for request, arguments in self._requests(action):
            script = scripts.get(bookie)
            answers = script(*arguments) if script is not None else BREAKS
            replies = [answers] if isinstance(answers, Reply | Broken) else answers or []
            for reply in replies:
                self._schedule(bookie, kind, request, reply)
        self.most[bookie] = max(self.most[bookie], self._in_flight(bookie))
        return None

    def _requests(self, action: Send) -> Iterator[tuple[int, tuple[int, ...]]]:
        for read in action.reads:
            if isinstance(read, EntryRead):
                self.asked[action.bookie] += read.entries.tolist()
                for request, entry in zip(
                    read.requests.tolist(), read.entries.tolist(), strict=True
                ):
                    yield request, (read.ledger_id, entry)
            else:
                self.ranges.setdefault(action.bookie, []).append((read.first, read.max_entries))
                yield read.request, (read.ledger_id, read.first, read.max_entries, read.max_bytes)

    def _in_flight(self, bookie: str) -> int:
        return sum(one.bookie == bookie and one.reply is not None for one in self._events)

    def _schedule(self, bookie: str, kind: ReadKind, request: int, reply: Reply | Broken) -> None:
        at, size = self.now, 0
        if isinstance(reply, Reply):
            size = len(reply.body or b"")
            if reply.trickle is not None:
                seconds, part = reply.trickle
                while size > part:
                    at, size = at + seconds, size - part
                    self._events.append(_Event(at, bookie, kind, part))
            at = max(at, self.now + reply.after)
        self._events.append(_Event(at, bookie, kind, size, request, reply))

    # -- waiting ---------------------------------------------------------------------------------

    def _wait(self, wait: Wait) -> list[Arrival | BookieFailure]:
        awaited = [
            event for event in self._events if (event.bookie, event.kind) in wait.connections
        ]
        if not self.waits:
            self.in_flight_at_first_wait = len(awaited)
        until = min((event.time for event in awaited), default=float("inf"))
        # poll() counts whole milliseconds
        limit = math.ceil(wait.seconds * 1000) / 1000
        self.waits.append(max(0.0, min(until - self.now, limit)))
        self.now += self.waits[-1]
        events: list[Arrival | BookieFailure] = []
        for bookie, kind in wait.connections:
            due = [
                e for e in awaited if (e.bookie, e.kind) == (bookie, kind) and e.time <= self.now
            ]
            if due and (bookie, kind) in self._connections:
                events.append(self._receive(bookie, kind, due))
        return events

    def _receive(
        self, bookie: str, kind: ReadKind, due: Sequence[_Event]
    ) -> Arrival | BookieFailure:
        replies: list[tuple[int, Reply]] = []
        for event in due:
            if isinstance(event.reply, Broken) and not replies:
                return self._failure(bookie, kind, event.reply)
            if isinstance(event.reply, Broken):
                break  # what came before is received first
            self._events.remove(event)
            if event.reply is not None:
                replies.append((event.request + event.reply.offset, event.reply))
        if replies:
            self._answered.add((bookie, kind))
            self._kept.discard((bookie, kind))
        return arrival_of(bookie, kind, replies, sum(event.byte_count for event in due))

    def _failure(self, bookie: str, kind: ReadKind, broken: Broken) -> BookieFailure:
        failure = BookieFailure(
            bookie,
            UnavailableError(f"bookie {bookie} {broken.why}"),
            was_kept=any((bookie, one) in self._kept for one in ReadKind),
            rejects_ranges=broken.in_order
            and kind is RANGE
            and (bookie, kind) not in self._answered,
        )
        self._disconnect(bookie)
        return failure

    def _disconnect(self, bookie: str) -> None:
        for known in (self._connections, self._kept, self._answered):
            known -= {(bookie, kind) for kind in ReadKind}
        self._events = [event for event in self._events if event.bookie != bookie]


def arrival_of(
    bookie: str, kind: ReadKind, replies: Sequence[tuple[int, Reply]], byte_count: int = 0
) -> Arrival:
    """The arrival of some replies to requests."""
    if kind is RANGE:
        answers = [
            RangeAnswer(
                BatchReadHeader(len(reply.body or b""), reply.status, 0, 0, request),
                np.frombuffer(reply.body or b"", np.uint8),
            )
            for request, reply in replies
        ]
        return Arrival(bookie, kind, byte_count, answers)
    bodies = [reply.body or b"" for _, reply in replies]
    ends = np.cumsum([len(body) for body in bodies], dtype=np.int64)
    table = np.empty((4, len(replies)), np.int64)
    for column, (request, reply) in enumerate(replies):
        size = -1 if reply.body is None else len(reply.body)
        table[:, column] = (request, reply.status, int(ends[column]) - max(0, size), size)
    return Arrival(
        bookie, kind, byte_count, EntryAnswers(table, np.frombuffer(b"".join(bodies), np.uint8))
    )
