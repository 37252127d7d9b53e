"""``pulsar-lake sql``: one query over topics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offloader.cli.options import ConfigOption, settings
from offloader.cli.render import SqlFormat, print_rows, say
from reader.errors import ConfigurationError, PulsarLakeError, plain_text

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_ext import PulsarLake

__all__ = ["one_line", "sql"]

_PLACE = re.compile(r"[.;]?\s*SQLSTATE: \w+|;? \(?line \d+,? pos \d+\)?")


def sql(
    query: Annotated[
        str,
        typer.Argument(
            help="Spark SQL; a topic is pulsar.`tenant/namespace`.`topic`.", show_default=False
        ),
    ],
    explain: Annotated[
        bool, typer.Option("--explain", help="Print what would be read instead.")
    ] = False,
    kind: Annotated[SqlFormat, typer.Option("--format", help="How to print.")] = SqlFormat.table,
    config: ConfigOption = None,
) -> None:
    """Run a query; each topic in it is one snapshot of all its messages."""
    from spark_ext import PulsarLake, error_of

    found = settings(config)
    text = query.strip().rstrip(";")
    with PulsarLake(config or found) as lake:
        try:
            if explain:
                _explain(lake, text)
                return
            result = lake.spark.sql(text).toArrow()
        except Exception as error:
            raise (error_of(error) or _sql_error(error)) from error
        print_rows(result.schema.names, _rows(result), kind)


def _explain(lake: PulsarLake, text: str) -> None:
    plans, by_spark = lake.explain_query(text)
    for plan in plans:
        say(plan)
    say(by_spark)


def _rows(result: pa.Table) -> Iterator[Mapping[str, Any]]:
    maps = [f.name for f in result.schema if str(f.type).startswith("map<")]
    for batch in result.to_batches():
        for row in batch.to_pylist():
            yield row | {name: None if row[name] is None else dict(row[name]) for name in maps}


def _sql_error(error: Exception) -> PulsarLakeError:
    return ConfigurationError(one_line(str(error)) or type(error).__name__)


def one_line(text: str) -> str:
    """Spark's own message: its first line, without error codes and the plan beneath."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return plain_text(_PLACE.sub("", first)).rstrip(" ;")
