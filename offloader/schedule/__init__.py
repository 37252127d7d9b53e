"""Which topic gets a turn, and when.

    discovery       which topics there are: names and patterns, looked up in Pulsar's lists
    lanes           slots for turns by kind, and who gets the next one (pure)
    next_turn       how long after an observation the next turn is (pure)
    queue           when each topic is ready for a turn, and its rank (pure)
    request         a request to offload one topic now, with progress and a result
    scheduler       the loop: rounds, and turns side by side

What a turn does is not here: the scheduler is given a ``TurnEngine``. Imports ``backlog``,
``model``, ``config`` and ``reader``.
"""

from offloader.schedule.discovery import Lookup, by_failure, find_topics, parse_names
from offloader.schedule.queue import TopicQueue
from offloader.schedule.request import Request
from offloader.schedule.scheduler import Rounds, Scheduler

__all__ = [
    "Lookup",
    "Request",
    "Rounds",
    "Scheduler",
    "TopicQueue",
    "by_failure",
    "find_topics",
    "parse_names",
]
