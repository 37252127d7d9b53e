"""``pulsar-lake offload``: the daemon, or one round."""

from __future__ import annotations

from typing import Annotated

import typer

from offloader.commands.options import ConfigOption, settings
from reader.admin import AdminClient
from reader.storage import storage_root

__all__ = ["offload"]


def offload(
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC",
            help="Topics, or patterns such as a/b/*; default: offload.topics of the settings.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="One round, then exit.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="All sealed ledgers, whatever the settings say.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Turn sealed ledgers into Parquet files of each topic's table.

    Ctrl-C (or SIGTERM) lets the running commit finish; once more ends at once.
    """
    from offloader.daemon import Daemon, spark_context  # heavy: decoders
    from offloader.report import Report
    from offloader.signals import Stop

    found = settings(config)
    storage_root(found.storage)  # before anything is done: is there a place to write to?
    with (
        AdminClient(found.pulsar) as admin,
        Report() as report,
        Stop(announce=report.say) as stop,
    ):
        daemon = Daemon(
            found,
            admin,
            topics or found.offload.topics,
            report=report,
            stop=stop,
            context=spark_context(found, stop),
            now=now,
        )
        failures = daemon.run_once() if once else []
        if not once:
            daemon.run()
    if failures:
        # Each failure has been said; the exit code is what is left.
        raise typer.Exit(1)
