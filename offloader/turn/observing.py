"""A turn's observation: what the scheduler keeps of a topic until its next turn. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from offloader.model import Observation
from offloader.schedule.policy import backlog, opened_at
from offloader.turn.held_topic import HeldTopic
from reader.model import Partition

__all__ = ["observation_of"]


def observation_of(
    held: HeldTopic,
    watermarks: Mapping[Partition, int],
    *,
    now_ms: int,
    release_in: float,
    give_up_in: float | None,
    rollover_after: timedelta | None,
) -> Observation:
    """What is known of the topic at the end of a turn, which left it at ``watermarks``.

    ``now_ms``: ms since the epoch; ``release_in``: seconds until more of the hold can be released
    (0.0: nothing is waiting); ``give_up_in``: until a chunked message is to be given up (None:
    there is none).
    """
    found = [backlog(listing, watermarks[one]) for one, listing in held.listed.items()]
    closed = [one.oldest_ms for one in found if one.oldest_ms is not None]
    opened = [at for one in held.listed.values() if (at := opened_at(one)) is not None]
    rollover_at = None
    if opened and rollover_after:
        rollover_at = min(opened) / 1000 + rollover_after.total_seconds()
    return Observation(
        at=held.began_ms / 1000,
        sealed={one.partition.full_name: one.sealed for one in found},
        unsealed={one.partition.full_name: one.unsealed for one in found},
        oldest=min(closed) / 1000 if closed else None,
        release_at=now_ms / 1000 + release_in if release_in else None,
        rollover_at=rollover_at,
        give_up_at=None if give_up_in is None else now_ms / 1000 + give_up_in,
        ledgers=sum(one.ledgers for one in found),
        notes=held.notes,
    )
