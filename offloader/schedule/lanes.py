"""Slots for turns, by kind of turn, and which ready topic gets the next free slot. Pure.

1. Each kind of turn has a lane with slots of its own. A topic whose last turn failed is in a lane
   for retries, and a topic whose last conversion was slow in a lane for slow topics
   (``Workers``), so such a topic occupies no slot of a healthy topic.
2. The topic of the highest rank starts first. Every fourth start of a lane goes to the topic that
   has been ready for longest, so each ready topic starts within four times as many starts as
   topics were ready before it.
3. A lane for retries or slow topics grows by one slot with each success and shrinks to its fewest
   slots with each failure. Retries after an outage double with each generation, and topics that
   keep failing occupy few threads and connections.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from offloader.model import Workers

_FOR_THE_LONGEST = 4

T = TypeVar("T")


class TurnKind(NamedTuple):
    """``observes``: the turn takes a new topic's hold and converts nothing. ``workers``: who
    converts the topic."""

    observes: bool
    workers: Workers


LANES = {
    TurnKind(observes=True, workers=Workers.HEALTHY): (32, 32),
    TurnKind(observes=False, workers=Workers.HEALTHY): (32, 32),
    TurnKind(observes=True, workers=Workers.RETRIES): (8, 32),
    TurnKind(observes=False, workers=Workers.RETRIES): (2, 32),
    TurnKind(observes=False, workers=Workers.SLOW): (2, 8),
}
"""The fewest and the most slots of each lane."""


@dataclass(slots=True)
class Lane(Generic[T]):
    """One lane: ``slots`` turns may run in it, and ``running`` turns do."""

    fewest: int
    most: int
    slots: int = field(init=False)
    running: int = 0
    starts: int = 0
    _by_rank: deque[T] = field(default_factory=deque)
    _by_wait: deque[T] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.slots = self.fewest

    def order(
        self, ready: Iterable[T], *, rank: Callable[[T], object], ready_since: Callable[[T], float]
    ) -> None:
        """Replace the topics that wait for a slot. A greater ``rank`` starts first."""
        waiting = list(ready)
        self._by_rank = deque(sorted(waiting, key=rank, reverse=True))  # type: ignore[arg-type]
        self._by_wait = deque(sorted(waiting, key=ready_since))

    def start(self, is_ready: Callable[[T], bool]) -> T | None:
        """Give a free slot to the next topic, and return that topic.

        Return None if no slot is free or no topic is ready. ``is_ready`` says whether a topic has
        not started since ``order``.
        """
        if self.running >= self.slots:
            return None
        longest = self.starts % _FOR_THE_LONGEST == _FOR_THE_LONGEST - 1
        waiting = self._by_wait if longest else self._by_rank
        while waiting:
            topic = waiting.popleft()
            if is_ready(topic):
                self.running += 1
                self.starts += 1
                return topic
        return None

    def end(self, *, succeeded: bool) -> None:
        """Take back the slot of a turn that has ended."""
        self.running -= 1
        self.slots = min(self.slots + 1, self.most) if succeeded else self.fewest


def new_lanes() -> dict[TurnKind, Lane[T]]:
    """Return an empty lane for each kind of turn."""
    return {kind: Lane(*slots) for kind, slots in LANES.items()}
