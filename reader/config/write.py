"""``[write]``: what writing may do."""

from reader.config.section import Section


class WriteConfig(Section):
    """``drop_topics``: whether DROP TABLE deletes a topic with its messages."""

    drop_topics: bool = False
