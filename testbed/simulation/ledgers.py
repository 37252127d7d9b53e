"""A managed ledger of the simulated Pulsar: what it stores, and the truth about each entry."""

from collections.abc import Iterator
from dataclasses import dataclass, field

Position = tuple[int, int]
"""(ledger id, entry id)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """``data``: as bookies have it. The rest is what a reader has to find in it.

    ``values``: of its messages; () of a marker. ``batch``: whether they have an index. ``chunk``:
    (uuid, number, of how many). ``broker_ms``: when it was stored, by the true clock.
    ``producer``, ``ids``: its name, first and last sequence id, if ``Producers`` took it.
    """

    data: bytes
    values: tuple[bytes | None, ...]
    broker_ms: int
    publish_ms: int
    batch: bool = False
    transaction: int | None = None
    chunk: tuple[bytes, int, int] | None = None
    key: bytes | None = None
    producer: str = ""
    ids: tuple[int, int] = (-1, -1)


@dataclass(slots=True, eq=False)
class Ledger:
    """``closed_ms``: None while open. ``deleted``: Pulsar has it no more. ``cold``: a commit said
    that it is in the table. ``lost``: deleted before that, with entries. ``copied``: all of it
    is in the table as part of the ledger that it was before a restore. ``load``: of the topic, in
    which its last entry was written. ``offload``: the UUID under which Pulsar's tiered storage has
    it, instead of the bookies. ``forgotten``: BookKeeper has no metadata of it. ``opened_ms``: None
    if the broker does not say."""

    id: int
    entries: list[Entry] = field(default_factory=list)
    closed_ms: int | None = None
    deleted: bool = False
    cold: bool = False
    lost: bool = False
    copied: bool = False
    load: int = 0
    offload: str | None = None
    forgotten: bool = False
    opened_ms: int | None = None


@dataclass(slots=True, eq=False)
class ManagedLedger:
    """One partition's. ``ledgers``: all that there ever were, the deleted ones too.

    ``cursors``: next entry to read. ``open``: transactions → where their first entry is.
    ``recovering_ms``: until then the transaction buffer is not ready. ``added``: entries since the
    last of ``loads``. ``held``: whether the hold was ever there.
    ``listed``: entries by ledger, as an offloader was first told since it was cleared.
    ``terminated``: it takes no more messages. ``counted_aborted``: the number of aborted
    transactions that the broker states, if it is not that of ``aborted``; -1: it states none.
    ``compacted``: the compacted ledger, if there is one, and ``compacted_from``: the entries that
    it has, by their position.

    By what commits said of it in this life: ``watermark``, and ``lookback``, where the first
    message begins that is waited for; ``expected``: the ledger that was to be the next;
    ``stepped_over``: a lost ledger that the product knew of; ``given_up``: the last chunk of a
    message → the last ledger that was offloaded with it. ``overdue``: messages that may be given
    up; ``broken``: of which something was deleted that was still needed. ``restored``: what was
    given up, and whether it is there again, is not followed any more.
    """

    name: str
    index: int
    created: str
    ledgers: list[Ledger] = field(default_factory=list)
    cursors: dict[str, Position] = field(default_factory=dict)
    properties: dict[str, dict[str, str]] = field(default_factory=dict)
    open: dict[int, Position] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    recovering_ms: int = 0
    bytes_in: int = 0
    added: int = 0
    loads: int = 1
    held: bool = False
    terminated: bool = False
    counted_aborted: int | None = None
    listed: dict[int, int] = field(default_factory=dict)
    watermark: int | None = None
    lookback: Position | None = None
    expected: int | None = None
    stepped_over: int | None = None
    compacted: Ledger | None = None
    compacted_from: dict[Position, Entry] = field(default_factory=dict)
    given_up: dict[Position, int] = field(default_factory=dict)
    overdue: set[bytes] = field(default_factory=set)
    broken: set[bytes] = field(default_factory=set)
    restored: bool = False

    @property
    def listing(self) -> list[Ledger]:
        """Those that Pulsar has, ascending; the last one is open."""
        return [one for one in self.ledgers if not one.deleted]

    @property
    def last_confirmed(self) -> Position:
        for one in reversed(self.listing):
            if one.entries:
                return one.id, len(one.entries) - 1
        return self.listing[-1].id, -1

    @property
    def max_read(self) -> Position:
        """The last position that no open transaction hides."""
        last = self.last_confirmed
        if not self.open:
            return last
        ledger, entry = min(self.open.values())
        if entry > 0:
            return min(last, (ledger, entry - 1))
        before = [one for one in self.listing if one.id < ledger and one.entries]
        return (before[-1].id, len(before[-1].entries) - 1) if before else (ledger, -1)

    def entries(self) -> Iterator[tuple[Ledger, int, Entry]]:
        """All that were ever written, in order."""
        for ledger in self.ledgers:
            for number, entry in enumerate(ledger.entries):
                yield ledger, number, entry

    def unfinished(self) -> set[bytes]:
        """Chunked messages that do not end in what is offloaded."""
        found = set()
        for ledger, _, entry in self.entries():
            if entry.chunk is None or entry.transaction in self.aborted:
                continue
            uuid, number, count = entry.chunk
            if number == count - 1 and ledger.cold:
                found.discard(uuid)
            else:
                found.add(uuid)
        return found

    def normal(self, at: Position) -> Position:
        """A position behind its ledger's last entry as the beginning of the next ledger."""
        for ledger in self.listing:
            if ledger.id > at[0]:
                return ledger.id, 0
            if ledger.id == at[0] and (at[1] < len(ledger.entries) or ledger.closed_ms is None):
                break
        return at

    def get(self, ledger_id: int) -> Ledger | None:
        """What Pulsar has of that id."""
        return next((one for one in self.listing if one.id == ledger_id), None)
