"""What a turn of a topic comes to: its commit, the moves of its holds, and what was observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from offloader.model.observation import Observation
from reader.model import Partition, Position, Topic

__all__ = ["PHASES", "Committed", "Release", "TaskCallback", "Turn"]

PHASES = ("list", "plan", "wait", "convert", "commit", "release")
"""What a turn's time goes to: Pulsar's lists and the table's log; schemas and splits; waiting for
a Spark job; that job; the commit; moving the hold."""

TaskCallback = Callable[[int, int], None]
"""Called with (tasks done, tasks in all) of a turn's Spark job, from any thread."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What one commit added.

    ``bytes``: of its files; ``stored``: of its ledgers, as BookKeeper counts them. ``rescued``:
    rows with an ``__error``.
    """

    version: int
    ledgers: int
    files: int
    rows: int
    bytes: int
    seconds: float
    reason: str
    stored: int = 0
    rescued: int = 0


@dataclass(frozen=True, slots=True)
class Release:
    """A move of one partition's hold: the next entry it needs, before and after."""

    partition: Partition
    before: Position
    after: Position


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one turn. ``more``: there is work left that is due. ``observation``:
    what is known of the topic after it."""

    topic: Topic
    committed: Committed | None
    released: tuple[Release, ...]
    more: bool
    observation: Observation
