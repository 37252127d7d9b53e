"""What the scheduler knows of a topic between two whole looks at it. Pure: no clock, no I/O.

A whole look (``turn.py``) costs a handful of admin requests and reads the table's log, so a topic
is not looked at in each round. Until the next look, three things can make it due, and each is
known beforehand or seen from afar:

- *age*: of a ledger that was sealed at the look, known to the second. One that is sealed later
  cannot be older than ``max_age`` before the look is ``max_age`` old: then comes the next one.
- *size*: only by what producers write, of which brokers keep count (``AdminClient.written``).
- *letting go*: of a commit, when its grace is over.

Everything else (a hold that was deleted, a count that a broker lost) waits for the next whole
look, an hour at most. Times are seconds since the epoch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from offloader.config import OffloadConfig
from reader.model import Topic

__all__ = ["LOOK_EVERY", "UNKNOWN_EVERY", "Look", "next_turn", "share"]

LOOK_EVERY = 3600.0
"""A topic is looked at wholly so often at least, and once in its ``max_age``."""

UNKNOWN_EVERY = 300.0
"""The same where the brokers do not say what producers write."""

_STEP = 1 / 16
"""Of the threshold: what is written between two looks that found too little sealed."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a whole look found, after the commit that it led to, if any.

    ``sealed`` and ``unsealed``: by full name of a partition, the bytes of sealed ledgers that are
    not in the table, and of the open ledger. ``oldest``: when the first of those sealed was
    closed. ``let_go``: when more of the hold can be released. ``roll_over``: when an open ledger
    is to be closed. None: nothing of the kind is waiting. ``ledgers``: how many of them are sealed
    and have entries. ``notes``: what is wrong, for people.
    """

    at: float
    sealed: Mapping[str, int] = field(default_factory=dict)
    unsealed: Mapping[str, int] = field(default_factory=dict)
    oldest: float | None = None
    let_go: float | None = None
    roll_over: float | None = None
    ledgers: int = 0
    notes: tuple[str, ...] = ()


def share(look: Look, written: Mapping[str, int], now: float, config: OffloadConfig) -> float:
    """How much of its limit the topic has reached: of the threshold or of the age, the larger.

    ``written``: bytes since the look, by full name of a partition. Above 1 it is due, if what
    was written is sealed by now.
    """
    reached = 0.0
    if look.oldest is not None:
        reached = (now - look.oldest) / max(config.max_age.total_seconds(), 1.0)
    for partition in look.sealed.keys() | look.unsealed.keys() | written.keys():
        size = _size(look, partition) + written.get(partition, 0)
        reached = max(reached, size / max(config.threshold_bytes, 1))
    return reached


def next_turn(
    topic: Topic, look: Look, written: Mapping[str, int] | None, config: OffloadConfig
) -> float:
    """When the topic is to be looked at again; ``written`` None: nobody knows."""
    after = look.at + config.interval.total_seconds()
    if written is not None and _may_be_full(look, written, config):
        return after
    age = config.max_age.total_seconds()
    # Each topic has its own period, so that looks at topics which began together spread out.
    period = min(age, LOOK_EVERY) * (0.5 + 0.5 * _fraction(topic))
    if config.rollover_after is not None:
        period = min(period, config.rollover_after.total_seconds())
    times = [look.at + period]
    if written is None:
        times.append(look.at + UNKNOWN_EVERY)
    if look.oldest is not None:
        times.append(look.oldest + age)
    times += [one for one in (look.let_go, look.roll_over) if one is not None]
    return max(after, min(times))


def _may_be_full(look: Look, written: Mapping[str, int], config: OffloadConfig) -> bool:
    """Whether a partition may have its threshold together, counting all that was written."""
    limit = config.threshold_bytes
    return any(
        _size(look, partition) + size >= limit and size >= limit * _STEP
        for partition, size in written.items()
        if size > 0
    )


def _size(look: Look, partition: str) -> int:
    return look.sealed.get(partition, 0) + look.unsealed.get(partition, 0)


def _fraction(topic: Topic) -> float:
    """0 to 1, the same in each process."""
    digest = hashlib.blake2b(topic.local_name.encode(), digest_size=4).digest()
    return int.from_bytes(digest) / 0xFFFFFFFF
