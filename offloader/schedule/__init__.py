"""Which topic gets a turn, when; and which of its ledgers are due then.

    discovery       which topics there are: names and patterns, looked up in Pulsar's lists
    lanes           slots for turns by kind, and who gets the next one (pure)
    newest_backlog  what of a topic is not in its table, and the newest of two such (pure)
    next_turn       how long after an observation the next turn is (pure)
    policy          which sealed ledgers of a partition are due, and why (pure)
    queue           when each topic is ready for a turn, and its rank (pure)
    request         a request to offload one topic now, with progress and a result
    scheduler       the loop: rounds, and turns side by side

What a turn does is not here: the scheduler is given a ``TurnEngine``. Imports ``model``,
``config`` and ``reader``.
"""

from offloader.schedule.discovery import Lookup, by_failure, find_topics, parse_names
from offloader.schedule.newest_backlog import backlog_after, topic_backlog
from offloader.schedule.queue import TopicQueue
from offloader.schedule.request import Request
from offloader.schedule.scheduler import Rounds, Scheduler

__all__ = [
    "Lookup",
    "Request",
    "Rounds",
    "Scheduler",
    "TopicQueue",
    "backlog_after",
    "by_failure",
    "find_topics",
    "parse_names",
    "topic_backlog",
]
