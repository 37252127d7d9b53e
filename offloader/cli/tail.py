"""``pulsar-lake tail``: a topic's last messages, and those that come, without a JVM."""

from contextlib import closing
from typing import Annotated

import typer

from offloader.cli import message_output
from offloader.cli.options import ConfigOption, settings
from offloader.cli.render import say


def tail(
    topic: message_output.TopicArgument,
    count: message_output.RowsOption = 10,
    follow: Annotated[
        bool, typer.Option("-f", help="Go on with each message that comes, until Ctrl-C.")
    ] = False,
    columns: message_output.ColumnsOption = None,
    kind: message_output.FormatOption = message_output.MessageFormat.table,
    config: ConfigOption = None,
) -> None:
    """Print the last messages of a topic, oldest first, wherever they are stored.

    In the order of the log within a partition, merged by publish time. With -f new messages
    follow, each once, and JSON is one object a line. No subscription is left behind.
    """
    message_output.start_lean()
    from reader import open_topic  # heavy: pyarrow

    shown: list[str] = []

    def failed(error: Exception) -> None:
        text = " ".join(str(error).split())
        if text not in shown[-1:]:
            shown.append(text)
            say(f"waiting: {text}", err=True)

    names = message_output.wanted_columns(columns)
    printer = message_output.MessagePrinter(kind, columns, endless=follow)
    with open_topic(settings(config), topic) as opened:
        if not follow:
            printer.show(opened.tail(count, names))
            return
        with closing(opened.follow(count, names, failed)) as tables:
            for rows in tables:
                printer.show(rows)
