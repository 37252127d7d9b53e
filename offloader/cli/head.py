"""``pulsar-lake head``: a topic's first messages, without a JVM."""

from offloader.cli import message_output
from offloader.cli.options import ConfigOption, settings


def head(
    topic: message_output.TopicArgument,
    count: message_output.RowsOption = 10,
    columns: message_output.ColumnsOption = None,
    kind: message_output.FormatOption = message_output.MessageFormat.table,
    config: ConfigOption = None,
) -> None:
    """Print the first messages of a topic, oldest first, wherever they are stored.

    In the order of the log within a partition, merged by publish time.
    """
    message_output.start_lean()
    from reader import open_topic  # heavy: pyarrow

    with open_topic(settings(config), topic) as opened:
        message_output.MessagePrinter(kind, columns).show(
            opened.head(count, message_output.wanted_columns(columns))
        )
