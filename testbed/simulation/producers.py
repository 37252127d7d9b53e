"""Producers of the simulated Pulsar: names, deduplication, and when an entry is stored.

As Pulsar 4.2 does. An entry that was sent is given to the ledger (*pushed*) and stored later, all
in order. The broker knows the highest sequence id of each name, pushed and stored. It keeps a
snapshot of them, and reads what lies behind the snapshot when it loads the topic. Names that no
producer has had for six hours are forgotten.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from testbed.simulation.cluster_state import ClusterState
from testbed.simulation.entry_bytes import stored_values
from testbed.simulation.ledgers import ManagedLedger, Position

IncidentKind = Literal[
    "hang up", "hang up behind", "unload", "broker crash", "refuse", "write fails", "slow"
]
Reply = tuple[Literal["receipt", "refused", "closed"], int, int, tuple[int, int]]
"""(what, number of the producer, sequence id, the position or (code, 0))."""

NOT_STORED = (-1, -1)
"""The position in the receipt for an entry that was there already."""
_UNSURE, _CHECKSUM = 2, 9  # of ServerError: PersistenceError, ChecksumError
_SNAPSHOT_ENTRIES = 5
"""Entries between two snapshots; 1,000 by Pulsar's default."""
_INACTIVE_MS = 6 * 3_600_000
_UNHEARD_MS = 60_000
"""A broker closes a connection that it has not heard of for so long, if its name is wanted."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One SEND: what its command says, and the entry."""

    number: int
    sequence: int
    highest: int
    entry: bytes


@dataclass(slots=True)
class Incident:
    """What happens at one of the next entries that come to a partition.

    ``entries``: how many come before; ``kept``: how many of those that wait are stored.
    """

    kind: IncidentKind
    entries: int
    kept: int


@dataclass(slots=True, eq=False)
class Session:
    """One connection, as the broker has it. ``producers``: by number, partition and name."""

    heard_ms: int
    alive: bool = True
    producers: dict[int, tuple[ManagedLedger, str]] = field(default_factory=dict)
    incoming: deque[Frame] = field(default_factory=deque)
    replies: deque[Reply] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class _Partition:
    """``waiting``: pushed and not stored. ``snapshot_at``: entries of the log before it."""

    deduplicated: bool = False
    pushed: dict[str, int] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    idle: dict[str, int] = field(default_factory=dict)
    snapshot: dict[str, int] = field(default_factory=dict)
    snapshot_at: int = 0
    waiting: deque[tuple[Session, Frame, str]] = field(default_factory=deque)
    slow_until: int = 0
    is_exclusive: bool = False


class Producers:
    """The producers of a cluster. ``incidents`` are still to come; ``happened`` counts those that
    came. ``may_enable``: whether policies of topics are permitted.

    ``forgotten``, ``refused``, ``undeduplicated``: how often a name was forgotten, an entry was
    refused, deduplication was turned off.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._clock = state.clock
        self._partitions: dict[ManagedLedger, _Partition] = {}
        self._sessions: list[Session] = []
        self._topics: dict[str, bool] = {}
        self.incidents: list[Incident] = []
        self.may_enable = True
        self.happened = self.forgotten = self.refused = self.undeduplicated = 0
        state.unloaded = self._unloaded

    # -- what is asked of it -------------------------------------------------------------------

    def connect(self) -> Session:
        """Return a new connection."""
        session = Session(self._clock.now_ms)
        self._sessions.append(session)
        return session

    def open(self, session: Session, number: int, ml: ManagedLedger, name: str) -> int | None:
        """Return the highest id of the name that was pushed, -1: the broker knows none.

        None: another producer has the name.
        """
        part = self._partition(ml)
        for other in self._sessions:
            if not other.alive or (ml, name) not in other.producers.values():
                continue
            if other is session or self._clock.now_ms - other.heard_ms < _UNHEARD_MS:
                return None
            self.end(other)
        if self._clock.now_ms >= part.slow_until:
            self._store(ml, part, len(part.waiting))
        self._forget(part)
        part.idle.pop(name, None)
        session.producers[number] = ml, name
        return part.pushed.get(name, -1)

    def is_exclusive(self, ml: ManagedLedger) -> bool:
        """Return whether somebody else has the partition alone."""
        return self._partition(ml).is_exclusive

    def is_troubled(self) -> bool:
        """Return whether a partition is slow, or a name is taken by a connection that is dead."""
        now = self._clock.now_ms
        slow = any(part.slow_until > now for part in self._partitions.values())
        return slow or any(one.alive and one.producers for one in self._sessions)

    def close(self, session: Session, number: int) -> None:
        """Give a name up."""
        found = session.producers.pop(number, None)
        if found is not None:
            self._partition(found[0]).idle[found[1]] = self._clock.now_ms

    def end(self, session: Session) -> None:
        """A connection ends. What came and was not looked at is dropped."""
        session.alive = False
        session.incoming.clear()
        for number in list(session.producers):
            self.close(session, number)

    def work(self, session: Session, most: int | None = None) -> None:
        """Take what has come through a connection, ``most``: so many entries; store what waits."""
        left = len(session.incoming) if most is None else most
        while left > 0 and session.alive and session.incoming:
            left -= 1
            frame = session.incoming.popleft()
            found = session.producers.get(frame.number)
            if found is not None:  # else nothing is stored, and nothing said
                self._take(session, frame, *found)
        for ml, _ in list(session.producers.values()):
            part = self._partition(ml)
            if self._clock.now_ms >= part.slow_until:
                self._store(ml, part, len(part.waiting))

    # -- deduplication -------------------------------------------------------------------------

    def deduplicates(self, ml: ManagedLedger) -> bool:
        """Return whether it is in force."""
        return self._partition(ml).deduplicated

    def enable(self, name: str) -> bool:
        """Turn it on for a topic, if policies of topics are permitted. Return whether they are."""
        if not self.may_enable:
            return False
        self._topics[name] = True
        for ml in self._state.topics[name].parts.values():
            part = self._partition(ml)
            if not part.deduplicated:
                part.deduplicated = True
                part.snapshot_at = _length(ml)  # its cursor begins at the end
        return True

    def disable(self, name: str) -> None:
        """Turn it off. All names are forgotten."""
        self._topics[name] = False
        self.undeduplicated += 1
        for ml in self._state.topics[name].parts.values():
            part = self._partition(ml)
            part.deduplicated = False
            for known in (part.pushed, part.stored, part.idle, part.snapshot):
                known.clear()

    def snapshot(self, ml: ManagedLedger) -> None:
        """The broker keeps what it knows; nothing before it is needed any more."""
        part = self._partition(ml)
        part.snapshot, part.snapshot_at = dict(part.stored), _length(ml)

    # -- what happens --------------------------------------------------------------------------

    def reserve(self, ml: ManagedLedger, *, exclusive: bool) -> None:
        """An exclusive producer of somebody else comes, or goes."""
        self._partition(ml).is_exclusive = exclusive

    def crash(self, kept: int) -> None:
        """The broker dies. Another one loads all topics, with ``kept`` of what waited."""
        for session in self._sessions:
            self.end(session)
        self._sessions.clear()
        for ml, part in list(self._partitions.items()):
            if ml.listing:
                self._store(ml, part, kept, silent=True)
                self._state.unload(ml)

    def mend(self) -> None:
        """Nothing more happens, and whoever is dead has no connection any more."""
        self.incidents.clear()
        for part in self._partitions.values():
            part.slow_until, part.is_exclusive = 0, False

    def _take(self, session: Session, frame: Frame, ml: ManagedLedger, name: str) -> None:
        incident = self._due()
        part = self._partition(ml)
        if incident is not None:
            self.happened += 1
            match incident.kind:
                case "hang up":
                    self._store(ml, part, incident.kept)
                    self.end(session)
                    return
                case "unload":
                    self._store(ml, part, incident.kept)
                    self._state.unload(ml)
                    return
                case "broker crash":
                    self.crash(incident.kept)
                    return
                case "refuse":
                    self.refused += 1
                    session.replies.append(
                        ("refused", frame.number, frame.sequence, (_CHECKSUM, 0))
                    )
                    return
                case "slow":
                    part.slow_until = self._clock.now_ms + (5_000, 90_000)[incident.kept % 2]
        self._push(session, frame, part, name)
        if incident is not None and incident.kind == "write fails":
            self._fail(ml, part, incident.kept)
        if incident is not None and incident.kind == "hang up behind":
            self._store(ml, part, len(part.waiting))
            self.end(session)

    def _due(self) -> Incident | None:
        if not self.incidents:
            return None
        first = self.incidents[0]
        first.entries -= 1
        return self.incidents.pop(0) if first.entries < 0 else None

    def _push(self, session: Session, frame: Frame, part: _Partition, name: str) -> None:
        if part.deduplicated:
            if frame.sequence <= part.pushed.get(name, -1):
                if frame.sequence <= part.stored.get(name, -1):
                    reply: Reply = ("receipt", frame.number, frame.sequence, NOT_STORED)
                else:
                    reply = ("refused", frame.number, frame.sequence, (_UNSURE, 0))
                session.replies.append(reply)
                return
            part.pushed[name] = frame.highest
        part.waiting.append((session, frame, name))

    def _store(self, ml: ManagedLedger, part: _Partition, most: int, silent: bool = False) -> None:
        for _ in range(min(most, len(part.waiting))):
            session, frame, name = part.waiting.popleft()
            ids = frame.sequence, frame.highest
            position: Position = self._state.store(
                ml, frame.entry, stored_values(frame.entry), producer=name, ids=ids
            )
            if part.deduplicated:
                part.stored[name] = max(frame.highest, part.stored.get(name, -1))
                if _length(ml) - part.snapshot_at >= _SNAPSHOT_ENTRIES:
                    self.snapshot(ml)
            if not silent:
                session.replies.append(("receipt", frame.number, frame.sequence, position))

    def _fail(self, ml: ManagedLedger, part: _Partition, kept: int) -> None:
        """The ledger takes no more entries: all producers are closed."""
        self._store(ml, part, kept)
        for session, frame, _ in part.waiting:
            session.replies.append(("refused", frame.number, frame.sequence, (_UNSURE, 0)))
        part.waiting.clear()
        part.pushed = dict(part.stored)
        self._close_all(ml)

    def _unloaded(self, ml: ManagedLedger) -> None:
        """Another broker loads the partition: what waited is lost, what is stored is read."""
        part = self._partition(ml)
        self._forget(part)
        part.waiting.clear()
        self._close_all(ml)
        part.pushed.clear()
        if part.deduplicated:
            part.pushed |= part.snapshot
            behind = [entry for _, _, entry in ml.entries()][part.snapshot_at :]
            part.pushed |= {one.producer: one.ids[1] for one in behind if one.producer}
        part.stored = dict(part.pushed)
        part.idle = dict.fromkeys(part.pushed, self._clock.now_ms)

    def _close_all(self, ml: ManagedLedger) -> None:
        for session in self._sessions:
            for number, (of, _) in list(session.producers.items()):
                if of is ml:
                    self.close(session, number)
                    session.replies.append(("closed", number, -1, NOT_STORED))

    def _forget(self, part: _Partition) -> None:
        """Forget names that nobody has had for long, also in the snapshot."""
        before = self._clock.now_ms - _INACTIVE_MS
        for name in [name for name, since in part.idle.items() if since < before]:
            del part.idle[name]
            self.forgotten += part.pushed.pop(name, None) is not None
            part.stored.pop(name, None)
            part.snapshot.pop(name, None)

    def _partition(self, ml: ManagedLedger) -> _Partition:
        found = self._partitions.get(ml)
        if found is None:
            topic = ml.name.partition("-partition-")[0]
            found = _Partition(deduplicated=self._topics.get(topic, False))
            self._partitions[ml] = found
        return found


def _length(ml: ManagedLedger) -> int:
    return sum(len(one.entries) for one in ml.ledgers)
