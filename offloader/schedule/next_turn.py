"""How long after an observation a topic's next turn is, by what it observed. Pure.

An observation (``turn/``) costs a handful of admin requests and reads the table's log, so a topic
is not observed in each round. Until the next one, four things can make it due, and each is known
beforehand or seen from afar:

- *age*: of a ledger that was sealed at the observation, known to the second. One that is sealed
  later cannot be older than ``max_age`` before the observation is: then comes the next one.
- *size*: only by what producers write, of which brokers keep count (``AdminClient.loaded``).
- *release* of the hold after a commit, when its grace is over.
- *chunks*: of a message that is not complete, given up when it has waited for too long.

Everything else (a hold that was deleted, a count that a broker lost) waits for the next
observation, an hour at most.

The result is a pause, which the queue counts by a monotonic clock. The times of an observation are
compared with each other only, so a clock that is set meanwhile changes no pause. Ages are by the
brokers' clock, of which the observation knows how far it is ahead.
"""

import hashlib
from collections.abc import Mapping

from offloader.config import OffloadConfig
from offloader.model import Observation, TopicBacklog
from reader.model import Topic

OBSERVE_EVERY = 3600.0
"""A topic is observed so often at least, and once in its ``max_age``."""

UNKNOWN_EVERY = 300.0
"""The same where the brokers do not say what producers write."""

_STEP = 1 / 16
"""Of the threshold: what is written between two observations that found too little sealed."""


def share(
    backlog: TopicBacklog, written: Mapping[str, int], now: float, config: OffloadConfig
) -> float:
    """How much of its limit the topic has reached: of the threshold or of the age, the larger.

    ``written``: bytes since the backlog was listed, by full name of a partition. Above 1 it is due,
    if what was written is sealed by now.
    """
    reached = 0.0
    if backlog.oldest is not None:
        reached = (now - backlog.oldest) / max(config.max_age.total_seconds(), 1.0)
    sizes = _sizes(backlog)
    for partition in sizes.keys() | written.keys():
        size = sizes.get(partition, 0) + written.get(partition, 0)
        reached = max(reached, size / max(config.threshold_bytes, 1))
    return reached


def next_turn(
    topic: Topic,
    observation: Observation,
    backlog: TopicBacklog,
    written: Mapping[str, int] | None,
    config: OffloadConfig,
) -> float:
    """Return the seconds from the beginning of the observation to the topic's next turn.

    ``backlog``: that of the observation, or a newer one. ``written``: None if the brokers do not
    say what producers write.
    """
    interval = config.interval.total_seconds()
    if _is_full(backlog, config):
        return interval
    if written is not None and _may_be_full(backlog, written, config):
        return interval
    age = config.max_age.total_seconds()
    # Each topic has its own period, so that observations which began together spread out.
    period = min(age, OBSERVE_EVERY) * (0.5 + 0.5 * _fraction(topic))
    if config.rollover_after is not None:
        period = min(period, config.rollover_after.total_seconds())
    pauses = [period]
    if written is None:
        pauses.append(UNKNOWN_EVERY)
    if backlog.oldest is not None:
        pauses.append(backlog.oldest + age - observation.at - observation.brokers_ahead)
    known = (observation.release_at, observation.rollover_at, observation.give_up_at)
    pauses += [at - observation.at for at in known if at is not None]
    return max(interval, min(pauses))


def _is_full(backlog: TopicBacklog, config: OffloadConfig) -> bool:
    """Whether a partition has its threshold sealed: somebody has looked since the last turn."""
    return any(one.sealed >= config.threshold_bytes and one.sealed for one in backlog.partitions)


def _may_be_full(backlog: TopicBacklog, written: Mapping[str, int], config: OffloadConfig) -> bool:
    """Whether a partition may have its threshold together, counting all that was written."""
    limit, sizes = config.threshold_bytes, _sizes(backlog)
    return any(
        sizes.get(partition, 0) + size >= limit and size >= limit * _STEP
        for partition, size in written.items()
        if size > 0
    )


def _sizes(backlog: TopicBacklog) -> dict[str, int]:
    """Bytes by full name of a partition."""
    return {one.partition.full_name: one.sealed + one.unsealed for one in backlog.partitions}


def _fraction(topic: Topic) -> float:
    """0 to 1, the same in each process."""
    digest = hashlib.blake2b(topic.local_name.encode(), digest_size=4).digest()
    return int.from_bytes(digest) / 0xFFFFFFFF
