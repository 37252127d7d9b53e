"""Publish times learned by reading: what lets the planner skip a sealed hot segment.

A sealed ledger is immutable, so its least and greatest publish time, once a complete read has
seen them, stay true: of that very ledger, which is known by its ``LedgerIdentity``, as a cluster
that was wiped or restored gives ids again. They are hints kept in a local directory, two files of
JSON lines a topic: what was put in order, and what tasks have appended since. The second is joined
into the first when it is as long, so both are bounded by the ledgers, not by the queries. Any
process does that, without a lock: a hint may be lost, which costs only time.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from reader.config import PulsarConfig, QueryConfig
from reader.model import LedgerIdentity, Segment, Topic
from reader.private_directory import check_private, make_private, warn_once

_APPENDED_BYTES = (64 << 10, 4 << 20)  # appended before it is put in order: at least, at most
_MOST_LEDGERS = 20_000
_MOST_PARTS = 64  # of one ledger: reads that do not touch each other
_UNUSED = 256  # lines more than twice what is used before a planner puts them in order


@dataclass(frozen=True, slots=True)
class LearnedTimes:
    """What a read of entries first..last of a ledger saw.

    Times: µs; None where no message had one. ``messages``: number of rows; None if the read passed
    over entries outside of its range of publish times.
    """

    partition: int
    ledger: int
    first: int
    last: int
    messages: int | None
    low: int | None
    high: int | None

    def covers(self, last_entry: int) -> bool:
        """Whether all entries up to ``last_entry`` were seen."""
        return self.first == 0 and self.last >= last_entry

    def joined(self, other: LearnedTimes) -> LearnedTimes | None:
        """Both as one, where they touch."""
        if other.first < self.first:
            return other.joined(self)
        if other.first > self.last + 1:
            return None
        if other.last <= self.last:
            return self
        messages = None
        if self.messages is not None and other.messages is not None:
            if other.first <= self.last:
                return None  # overlapping reads: their messages cannot be added
            messages = self.messages + other.messages
        lows = [v for v in (self.low, other.low) if v is not None]
        highs = [v for v in (self.high, other.high) if v is not None]
        return LearnedTimes(
            self.partition,
            self.ledger,
            self.first,
            other.last,
            messages,
            min(lows, default=None),
            max(highs, default=None),
        )


_Key = tuple[int, int, LedgerIdentity]
_Parts = dict[_Key, set[LearnedTimes]]  # the ledgers that were read last come last


class PublishTimeStore:
    """What reads have learned of one topic in one cluster."""

    def __init__(self, query: QueryConfig, pulsar: PulsarConfig, topic: Topic) -> None:
        root = query.cache_dir or (
            Path(os.environ.get("PULSAR_LAKE_CACHE", "~/.cache/pulsar-lake")).expanduser()
            / "publish-times"
        )
        name = f"{pulsar.admin_url} {pulsar.cluster} {topic.full_name}"
        stem = hashlib.sha256(name.encode()).hexdigest()[:32]
        self._ordered = root / f"{stem}.jsonl"
        self._appended = root / f"{stem}.new.jsonl"
        self._on = query.learn_publish_times
        self._lost = frozenset(pulsar.lost_ledgers)

    def learn(self, found: Iterable[tuple[LedgerIdentity, LearnedTimes]]) -> None:
        """Keep them, each of a ledger of that identity; silently not where that cannot be.

        Nothing is kept of ledgers that are declared lost: once restored, they have more.
        """
        found = [(identity, one) for identity, one in found if one.ledger not in self._lost]
        if not self._on or not found:
            return
        try:
            make_private(self._appended.parent)
            # One write in append mode is atomic among tasks; a line that is torn all the same is
            # passed over.
            with self._appended.open("ab", buffering=0) as out:
                out.write(b"".join(_line(identity, one) for identity, one in found))
                size = out.tell()
            least, most = _APPENDED_BYTES
            if size > least and size > min(most, _size(self._ordered)):
                self._put_in_order(_joined(_parse(self._lines())))
        except OSError:
            return  # a hint that is not kept costs only time

    def known(self, segments: Iterable[Segment]) -> dict[tuple[int, int], LearnedTimes]:
        """(partition index, ledger id) → what is known from entry 0 on of these very ledgers, of
        none that is declared lost: what was read of it before is not what can be read now.

        Forgets the others, where they are the most of what there is. Nothing, and one warning,
        for a directory that others may write to: pruning and counts believe what is there.
        """
        if not self._is_believed():
            return {}
        wanted = {
            (one.partition.index, one.ledger_id, one.identity)
            for one in segments
            if one.identity is not None and one.ledger_id not in self._lost
        }
        try:
            lines = self._lines()
            parts = _joined(_parse(lines))
            used = {key: some for key, some in parts.items() if key in wanted}
            if len(lines) > 2 * sum(map(len, used.values())) + _UNUSED:
                self._put_in_order(used)
        except OSError:
            return {}
        return {(index, ledger): _total(some) for (index, ledger, _), some in used.items()}

    def _is_believed(self) -> bool:
        directory = self._ordered.parent
        try:
            check_private(directory)
        except FileNotFoundError:
            return False  # nothing was learned
        except OSError as error:
            warn_once(
                f"pulsar-lake: learned publish times in {directory} are not used: {error.strerror} "
                "(empty it and chmod 700 it, or set query.cache_dir)"
            )
            return False
        return True

    def _lines(self) -> list[bytes]:
        found: list[bytes] = []
        for file in (self._ordered, self._appended):
            try:
                found += file.read_bytes().splitlines()
            except FileNotFoundError:
                continue
        return found

    def _put_in_order(self, parts: Mapping[_Key, Iterable[LearnedTimes]]) -> None:
        """What another task appends meanwhile is lost."""
        lines = [_line(key[2], one) for key in list(parts)[-_MOST_LEDGERS:] for one in parts[key]]
        new = self._ordered.with_name(f"{self._ordered.stem}.{uuid.uuid4().hex}.tmp")
        try:
            new.write_bytes(b"".join(lines))
            new.replace(self._ordered)
        finally:
            new.unlink(missing_ok=True)
        self._appended.unlink(missing_ok=True)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _line(identity: LedgerIdentity, found: LearnedTimes) -> bytes:
    return json.dumps(asdict(found) | asdict(identity), separators=(",", ":")).encode() + b"\n"


_FOUND = [one.name for one in fields(LearnedTimes)]
_IDENTITY = [one.name for one in fields(LedgerIdentity)]
_NULLABLE = frozenset({"low", "high", "messages"})


def _parse(lines: Iterable[bytes]) -> Iterator[tuple[LedgerIdentity, LearnedTimes]]:
    """What the lines say that are whole."""
    for line in lines:
        try:
            value: dict[str, Any] = json.loads(line)
            if value.keys() == {*_FOUND, *_IDENTITY} and all(map(_fits, value.items())):
                yield (
                    LedgerIdentity(**{name: value[name] for name in _IDENTITY}),
                    LearnedTimes(**{name: value[name] for name in _FOUND}),
                )
        except (ValueError, AttributeError):
            continue  # a torn line


def _fits(member: tuple[str, object]) -> bool:
    name, value = member
    kind = str if name == "created_at" else int
    return type(value) is kind or (value is None and name in _NULLABLE)


def _joined(found: Iterable[tuple[LedgerIdentity, LearnedTimes]]) -> _Parts:
    """Of each ledger the reads, those that touch the beginning as one."""
    by_ledger: _Parts = {}
    for identity, one in found:
        key = one.partition, one.ledger, identity
        parts = by_ledger.pop(key, set())
        parts.add(one)
        by_ledger[key] = parts
    for key, parts in by_ledger.items():
        total = _total(parts)
        counted = {one for one in parts if one.messages is not None}
        others = {one for one in parts - counted if one.last > total.last}
        if total.messages is None:
            others.add(total)
        # Apart: the rows of what others passed over may still be counted, part by part.
        by_ledger[key] = _kept(counted, key) | _kept(others, key)
    return by_ledger


def _kept(parts: Collection[LearnedTimes], key: _Key) -> set[LearnedTimes]:
    """The parts that touch the beginning as one, and those beyond it."""
    if not parts:
        return set()
    total = _joined_parts(parts)
    others = (one for one in parts if one.first < total.first or one.last > total.last)
    # A complete one needs no other.
    kept = [] if total.covers(key[2].last_entry) else sorted(others, key=_place)
    return {total, *kept[:_MOST_PARTS]}


def _total(parts: Collection[LearnedTimes]) -> LearnedTimes:
    """Return what is known from the first entry on, with the number of rows if all are counted."""
    everything = _joined_parts(replace(one, messages=None) for one in parts)
    counted = [one for one in parts if one.messages is not None]
    total = _joined_parts(counted) if counted else everything
    return total if (total.first, total.last) == (everything.first, everything.last) else everything


def _joined_parts(parts: Iterable[LearnedTimes]) -> LearnedTimes:
    ordered = sorted(parts, key=_place)
    total = ordered[0]
    for part in ordered[1:]:
        total = total.joined(part) or total
    return total


def _place(one: LearnedTimes) -> tuple[int, int]:
    return one.first, -one.last
