"""``pulsar-lake head``: a topic's first messages, without a JVM."""

from offloader.cli.message_output import (
    ColumnsOption,
    FormatOption,
    MessageFormat,
    MessagePrinter,
    RowsOption,
    TopicArgument,
    start_lean,
    wanted_columns,
)
from offloader.cli.options import ConfigOption, settings


def head(
    topic: TopicArgument,
    count: RowsOption = 10,
    columns: ColumnsOption = None,
    kind: FormatOption = MessageFormat.table,
    config: ConfigOption = None,
) -> None:
    """Print the first messages of a topic, oldest first, wherever they are stored.

    In the order of the log within a partition, merged by publish time.
    """
    start_lean()
    from reader import open_topic  # heavy: pyarrow

    with open_topic(settings(config), topic) as opened:
        MessagePrinter(kind, columns).show(opened.head(count, wanted_columns(columns)))
