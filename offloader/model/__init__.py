"""Values of the offloader: what engines give each other, the scheduler, the page and metrics.

    backlogs            what of a partition, and of a topic, is not in the table
    byte_sizes          sizes in bytes, as text for people
    clocks              the clocks that a process goes by
    due                 what of a partition is due
    iceberg_result      what following did to a topic's Iceberg table, how far that is behind
    listening           listener: a callback that cannot stop who calls it
    maintenance_result  what maintenance did to one topic's table
    observation         what is known of topics: of all in a round, of one at its last turn
    patterns            names with wildcards, and which settings hold for a topic (pure)
    retry_policy        how often what failed is tried again, and after which pauses
    stopping            StoppedError: the daemon ends before it came to that
    turn                what a turn comes to: its commit, moves of its holds; its phases; Workers

Nothing here does anything: no I/O (but a line in Python's log), no thread. Imports
``config`` and ``reader``.
"""

from offloader.model.backlogs import Backlog, TopicBacklog
from offloader.model.byte_sizes import size_text
from offloader.model.clocks import HOST_CLOCKS, Clocks
from offloader.model.due import COMMIT_BYTES, SLOW_COMMIT_BYTES, Due, Trigger
from offloader.model.iceberg_result import IcebergLag, IcebergResult
from offloader.model.listening import listener
from offloader.model.maintenance_result import MaintenanceResult
from offloader.model.observation import Discovery, Observation, TopicState
from offloader.model.patterns import is_enabled, is_pattern, matches, settings_of
from offloader.model.retry_policy import COMMIT_RETRIES, CommitRetries, back_off
from offloader.model.stopping import StoppedError
from offloader.model.turn import PHASES, Committed, Release, TaskCallback, Turn, Workers

__all__ = [
    "COMMIT_BYTES",
    "COMMIT_RETRIES",
    "HOST_CLOCKS",
    "PHASES",
    "SLOW_COMMIT_BYTES",
    "Backlog",
    "Clocks",
    "CommitRetries",
    "Committed",
    "Discovery",
    "Due",
    "IcebergLag",
    "IcebergResult",
    "MaintenanceResult",
    "Observation",
    "Release",
    "StoppedError",
    "TaskCallback",
    "TopicBacklog",
    "TopicState",
    "Trigger",
    "Turn",
    "Workers",
    "back_off",
    "is_enabled",
    "is_pattern",
    "listener",
    "matches",
    "settings_of",
    "size_text",
]
