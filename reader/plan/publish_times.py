"""Publish times learned by reading: what lets the planner skip a sealed hot segment.

A sealed ledger is immutable, so its least and greatest publish time, once a complete read has
seen them, stay true. They are hints kept in a local directory, one file of JSON lines a topic,
appended to by tasks and read by the planner. Losing the directory costs only time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from reader.config import PulsarConfig, QueryConfig
from reader.model import Topic

__all__ = ["LearnedTimes", "PublishTimeStore"]


@dataclass(frozen=True, slots=True)
class LearnedTimes:
    """What a read of entries first..last of a ledger saw.

    Times: µs; None where no message had one.
    """

    partition: int
    ledger: int
    first: int
    last: int
    messages: int
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
        if other.first <= self.last:
            return None  # overlapping reads: their messages cannot be added
        lows = [v for v in (self.low, other.low) if v is not None]
        highs = [v for v in (self.high, other.high) if v is not None]
        return LearnedTimes(
            self.partition,
            self.ledger,
            self.first,
            other.last,
            self.messages + other.messages,
            min(lows, default=None),
            max(highs, default=None),
        )


class PublishTimeStore:
    """What reads have learned of one topic in one cluster."""

    def __init__(self, query: QueryConfig, pulsar: PulsarConfig, topic: Topic) -> None:
        root = query.cache_dir or (
            Path(os.environ.get("PULSAR_LAKE_CACHE", "~/.cache/pulsar-lake")).expanduser()
            / "publish-times"
        )
        name = f"{pulsar.admin_url} {pulsar.cluster} {topic.full_name}"
        self._file = root / (hashlib.sha256(name.encode()).hexdigest()[:32] + ".jsonl")
        self._on = query.learn_publish_times

    def learn(self, found: LearnedTimes) -> None:
        """Keep one; silently not, where the directory cannot be written."""
        if not self._on:
            return
        line = json.dumps(asdict(found), separators=(",", ":")) + "\n"
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            # One write of one short line in append mode is atomic among tasks.
            with self._file.open("ab", buffering=0) as out:
                out.write(line.encode())
        except OSError:
            return  # a hint that is not kept costs only time

    def known(self) -> dict[tuple[int, int], LearnedTimes]:
        """(partition index, ledger id) → what is known from entry 0 on."""
        try:
            text = self._file.read_text()
        except OSError:
            return {}
        return _join(_parse(text.splitlines()))


def _parse(lines: Iterable[str]) -> Iterable[LearnedTimes]:
    for line in lines:
        try:
            yield LearnedTimes(**json.loads(line))
        except (ValueError, TypeError):
            continue  # a torn line


def _join(found: Iterable[LearnedTimes]) -> dict[tuple[int, int], LearnedTimes]:
    by_ledger: dict[tuple[int, int], set[LearnedTimes]] = {}
    for one in found:
        by_ledger.setdefault((one.partition, one.ledger), set()).add(one)
    known = {}
    for key, ranges in by_ledger.items():
        ordered = sorted(ranges, key=lambda r: (r.first, -r.last))
        total = ordered[0]
        for one in ordered[1:]:
            total = total.joined(one) or total
        known[key] = total
    return known
