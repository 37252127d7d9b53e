"""``pulsar-lake head`` and ``tail``: a topic's first and last messages, without a JVM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from offloader.cli.options import ConfigOption, settings
from offloader.cli.render import EndlessRows, SqlFormat, print_rows, say
from offloader.cli.results import rows_of

if TYPE_CHECKING:
    import pyarrow as pa

TopicArgument = Annotated[str, typer.Argument(help="tenant/namespace/topic", show_default=False)]
RowsOption = Annotated[int, typer.Option("-n", min=0, metavar="N", help="How many messages.")]


class MessageFormat(StrEnum):
    """How messages are printed."""

    table = "table"
    json = "json"
    csv = "csv"


FormatOption = Annotated[MessageFormat, typer.Option("--format", help="How to print.")]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAME,…",
        help="Which columns; * for all. Default: payload, key, publish time, position, error.",
        show_default=False,
    ),
]

_SHOWN = (
    "__key",
    "__publishTime",
    "__partition",
    "__ledgerId",
    "__entryId",
    "__batchIndex",
    "__error",
)
"""Of the metadata columns."""


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
    _start_lean()
    from reader import open_topic  # heavy: pyarrow

    with open_topic(settings(config), topic) as opened:
        MessagePrinter(kind, columns).show(opened.head(count, _wanted_columns(columns)))


def tail(
    topic: TopicArgument,
    count: RowsOption = 10,
    follow: Annotated[
        bool, typer.Option("-f", help="Go on with each message that comes, until Ctrl-C.")
    ] = False,
    columns: ColumnsOption = None,
    kind: FormatOption = MessageFormat.table,
    config: ConfigOption = None,
) -> None:
    """Print the last messages of a topic, oldest first, wherever they are stored.

    In the order of the log within a partition, merged by publish time. With -f new messages
    follow, each once, and JSON is one object a line. No subscription is left behind.
    """
    _start_lean()
    from reader import open_topic  # heavy: pyarrow

    shown: list[str] = []

    def failed(error: Exception) -> None:
        text = " ".join(str(error).split())
        if text not in shown[-1:]:
            shown.append(text)
            say(f"waiting: {text}", err=True)

    names = _wanted_columns(columns)
    printer = MessagePrinter(kind, columns, endless=follow)
    with open_topic(settings(config), topic) as opened:
        if not follow:
            printer.show(opened.tail(count, names))
            return
        with closing(opened.follow(count, names, failed)) as tables:
            for rows in tables:
                printer.show(rows)


def _wanted_columns(text: str | None) -> list[str] | None:
    """Return the names of ``--columns``. None: all are read."""
    return None if text in (None, "*") else [name.strip() for name in str(text).split(",")]


def _start_lean() -> None:
    """Keep out of this process what httpcore and httpx import if it is installed, and do not need.

    ``None`` makes an import of the name raise ModuleNotFoundError.
    """
    for name in ("trio", "pygments"):
        cast(dict[str, Any], sys.modules).setdefault(name, None)


class MessagePrinter:
    """Prints tables of messages one after the other, as one output.

    ``text``: ``--columns``. ``endless``: more may come, so JSON is one object a line.
    """

    def __init__(self, kind: MessageFormat, text: str | None, *, endless: bool = False) -> None:
        self._kind = SqlFormat(kind.value)
        self._all = text is not None
        self._endless = endless
        self._rows: EndlessRows | None = None

    def show(self, table: pa.Table) -> None:
        """Print a table now."""
        names = table.schema.names if self._all else _default_columns(table.schema.names)
        rows = rows_of(table.to_batches())
        if self._endless:
            self._rows = self._rows or EndlessRows(names, self._kind)
            self._rows.show(rows)
        else:
            print_rows(names, rows, self._kind)


def _default_columns(names: Sequence[str]) -> list[str]:
    from reader.model.columns import METADATA_NAMES

    payload = [name for name in names if name not in METADATA_NAMES]
    return [*payload, *(name for name in _SHOWN if name in names)]
