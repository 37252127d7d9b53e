"""``[write]``: what writing may do."""

from __future__ import annotations

from reader.config.section import Section

__all__ = ["WriteConfig"]


class WriteConfig(Section):
    """``drop_topics``: whether DROP TABLE deletes a topic with its messages."""

    drop_topics: bool = False
