"""What of a topic is not in its table yet, and which of it is due.

    newest  what of a topic is not in its table, and the newest of two such
    policy  which sealed ledgers of a partition are due, and why

Pure. Imports ``model``, ``config`` and ``reader``.
"""

from offloader.backlog.newest import backlog_after, newest_backlog, topic_backlog

__all__ = ["backlog_after", "newest_backlog", "topic_backlog"]
