"""What keeps Pulsar from deleting messages that are not in the table, and what shows that it did.

    hold              the durable subscription: taken, claimed, moved (each partition's by itself)
    gap_tracker       ledgers that this process saw, so that one that goes unconverted is missed
    retention_checks  settings of Pulsar that delete messages although the hold is there
    topic_kinds       shadow topics, and those that became scalable topics

When a hold is released decides ``turn``. Imports ``model``, ``config`` and ``reader``.
"""

from offloader.subscription.gap_tracker import GapTracker, filled_above
from offloader.subscription.retention_checks import PolicyReader, RetentionChecks, unsafe_settings
from offloader.subscription.topic_kinds import KindReader, TopicKinds, is_ended, shadow_note

__all__ = [
    "GapTracker",
    "KindReader",
    "PolicyReader",
    "RetentionChecks",
    "TopicKinds",
    "filled_above",
    "is_ended",
    "shadow_note",
    "unsafe_settings",
]
