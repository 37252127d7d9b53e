"""A topic's segments as blocks on a time axis. Pure.

A block is one segment, what a file has of older ones, or several neighbours where there are too
many. Where it lies in time: up to when its ledger was closed or, in the table, its last message was
published; from there back to its first message, or to the end of the block before. One without
entries takes no time: a sealed one is where it was closed, an open one where the last before it
ended. Producers' clocks may be anything: a time outside what the ledger's neighbours allow is
corrected for the drawing only.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from reader.model import Segment, SegmentState, Tier
from reader.plan import OlderLedgers


@dataclass(frozen=True, slots=True)
class Block:
    """Segments of one partition, from ledger ``first`` to ``last``: so many ``ledgers``, if known.

    State, tier and reason (its text) are the plan's. ``empty``: it never had an entry, or an open
    one has none yet. Times in seconds since the epoch, None where unknown: ``published_from`` and
    ``published_to`` by producers' clocks, ``closed_at`` by the broker's; ``begin`` and ``end`` for
    the drawing.
    """

    partition: int
    first: int
    last: int
    ledgers: int | None
    state: SegmentState
    tier: Tier
    reason: str
    entries: int
    empty: bool
    rows: int | None
    bytes: int
    published_from: float | None
    published_to: float | None
    closed_at: float | None
    begin: float = 0.0
    end: float = 0.0

    def value(self) -> dict[str, Any]:
        return asdict(self)


def segment_block(one: Segment) -> Block:
    """A segment as a plan has it."""
    return Block(
        partition=one.partition.index,
        first=one.ledger_id,
        last=one.ledger_id,
        ledgers=1,
        state=one.state,
        tier=one.tier,
        reason=str(one.reason),
        entries=one.entries,
        empty=not one.entries and one.state != "lost",
        rows=one.rows,
        bytes=one.bytes,
        published_from=_seconds(one.min_publish_time),
        published_to=_seconds(one.max_publish_time),
        closed_at=None if one.closed_at is None else one.closed_at / 1000,
    )


def file_block(one: OlderLedgers) -> Block:
    """What a file has of ledgers whose commits were not read; nobody counts their entries."""
    return Block(
        partition=one.partition.index,
        first=one.first,
        last=one.last,
        ledgers=1 if one.first == one.last else None,
        state=one.state,
        tier=one.tier,
        reason=str(one.reason),
        entries=0,
        empty=False,
        rows=one.rows,
        bytes=one.bytes,
        published_from=_seconds(one.min_publish_time),
        published_to=_seconds(one.max_publish_time),
        closed_at=None,
    )


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / 1e6


def placed(blocks: Iterable[Block], now: float) -> list[Block]:
    """The blocks by partition and ledger, each with ``begin`` and ``end``, none over another."""
    found: list[Block] = []
    for some in _by_partition(blocks).values():
        ceilings = _ceilings(some, now)
        first = min(_first_time(some, ceilings[0]), ceilings[0])
        before: float | None = None
        for one, ceiling in zip(some, ceilings, strict=True):
            floor = -math.inf if before is None else before
            end = ceiling if one.state == "open" and not one.empty else _end(one)
            if end is None:
                end = first if before is None else before
            end = min(max(end, floor), ceiling)
            begin = one.published_from
            if begin is None or not floor <= begin <= end:
                begin = end if before is None or one.empty else before
            found.append(replace(one, begin=begin, end=end))
            before = end
    return found


def _end(one: Block) -> float | None:
    return one.closed_at if one.closed_at is not None else one.published_to


def _first_time(blocks: Sequence[Block], otherwise: float) -> float:
    """The first that is known: where a block without any stands that has none before it."""
    known = (time for one in blocks for time in (one.published_from, _end(one)))
    return next((time for time in known if time is not None), otherwise)


def _ceilings(blocks: Sequence[Block], now: float) -> list[float]:
    """Each block ends before any later ledger was closed: brokers' clocks are believed."""
    found, ceiling = [], now
    for one in reversed(blocks):
        if one.closed_at is not None:
            ceiling = min(ceiling, one.closed_at)
        found.append(ceiling)
    return found[::-1]


def merged(blocks: Sequence[Block], most: int) -> list[Block]:
    """At most about ``most`` blocks: the older half of them stands for neighbours of one kind."""
    if len(blocks) <= most:
        return list(blocks)
    groups = _by_partition(blocks)
    share = max(2, most // len(groups))
    found: list[Block] = []
    for some in groups.values():
        newest = share // 2
        old, new = some[:-newest], some[-newest:]
        step = -(-len(old) // max(1, share - newest))
        at = 0
        while at < len(old):
            run = [old[at]]
            while len(run) < step and at + len(run) < len(old):
                following = old[at + len(run)]
                if _kind(following) != _kind(run[0]):
                    break
                run.append(following)
            at += len(run)
            found.append(_joined(run))
        found += new
    return found


def _kind(one: Block) -> tuple[SegmentState, Tier, bool]:
    return one.state, one.tier, one.empty


def _joined(run: Sequence[Block]) -> Block:
    if len(run) == 1:
        return run[0]
    first, last = run[0], run[-1]
    ledgers = [one.ledgers for one in run if one.ledgers is not None]
    counted = [one.rows for one in run if one.rows is not None]
    froms = [one.published_from for one in run if one.published_from is not None]
    tos = [one.published_to for one in run if one.published_to is not None]
    return replace(
        first,
        last=last.last,
        ledgers=sum(ledgers) if len(ledgers) == len(run) else None,
        entries=sum(one.entries for one in run),
        rows=sum(counted) if counted else None,
        bytes=sum(one.bytes for one in run),
        published_from=min(froms, default=None),
        published_to=max(tos, default=None),
        closed_at=last.closed_at,
        end=last.end,
    )


def _by_partition(blocks: Iterable[Block]) -> Mapping[int, list[Block]]:
    found: dict[int, list[Block]] = {}
    for one in sorted(blocks, key=lambda one: (one.partition, one.first)):
        found.setdefault(one.partition, []).append(one)
    return found
