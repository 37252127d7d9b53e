"""A turn's observation: what the scheduler keeps of a topic until its next turn. Pure."""

from collections.abc import Mapping

from offloader.backlog import topic_backlog
from offloader.backlog.policy import opened_at
from offloader.config import OffloadConfig
from offloader.model import Observation
from offloader.turn.held_topic import HeldTopic
from reader.model import Partition


def observation_of(
    held: HeldTopic,
    watermarks: Mapping[Partition, int],
    *,
    version: int | None,
    read: float,
    settings: OffloadConfig,
    now_ms: int,
    release_in: float,
    give_up_in: float | None,
) -> Observation:
    """What is known of the topic at the end of a turn, which left it at ``watermarks``.

    These are of the table's ``version``, as it was at ``read`` (seconds, monotonic). ``now_ms``: ms
    since the epoch; ``release_in``: seconds until more of the hold can be released (0.0: nothing is
    waiting); ``give_up_in``: until a chunked message is to be given up (None: there is none).
    """
    backlog = topic_backlog(
        held.listed.values(),
        watermarks,
        at=held.began_ms / 1000,
        asked=held.began,
        read=read,
        version=version,
        subscription=settings.subscription,
    )
    ahead = [
        (one.listed_at - held.began_ms) / 1000
        for one in held.listed.values()
        if one.listed_at is not None
    ]
    opened = [at for one in held.listed.values() if (at := opened_at(one)) is not None]
    rollover_at = None
    if opened and settings.rollover_after:
        age = settings.rollover_after.total_seconds()
        rollover_at = min(opened) / 1000 + age - max(ahead, default=0.0)
    return Observation(
        at=held.began_ms / 1000,
        backlog=backlog,
        release_at=now_ms / 1000 + release_in if release_in else None,
        rollover_at=rollover_at,
        give_up_at=None if give_up_in is None else now_ms / 1000 + give_up_in,
        notes=held.notes,
        brokers_ahead=max(ahead, default=0.0),
    )
