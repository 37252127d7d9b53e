"""``pulsar-lake offload``: the daemon, or one round."""

import contextlib
from typing import Annotated

import typer

from offloader.cli.options import ConfigOption, TopicsArgument, settings


def offload(
    topics: TopicsArgument = None,
    once: Annotated[bool, typer.Option("--once", help="One round, then exit.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="All sealed ledgers, regardless of size and age.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Offload sealed ledgers as Parquet files to each topic's Delta table.

    Runs until it is stopped (unless --once), with a status page at http.address. The first Ctrl-C
    (or SIGTERM) lets running Spark jobs finish, and commits what is whole then; the second ends at
    once.
    """
    from offloader.convert import SparkStarter
    from offloader.service.console import Console
    from offloader.service.daemon import Daemon  # heavy: decoders
    from offloader.service.signals import Stop
    from offloader.web.server import StatusServer, bind
    from reader.clients import Clients

    found = settings(config)
    with (
        Clients(found) as clients,
        Console() as console,
        Stop(announce=console.log) as stop,
        contextlib.ExitStack() as stack,
    ):
        spark = SparkStarter(found)
        stop.cancel = spark.cancel
        daemon = Daemon(
            found,
            clients,
            topics or found.offload.topics,
            console=console,
            stop=stop,
            context=spark,
            now=now,
        )
        failures = daemon.run_once() if once else []
        if found.http.enabled and not once:
            listening = stack.enter_context(bind(found.http))
            server = StatusServer(
                clients,
                found.offload,
                found.http,
                daemon,
                listening,
                stopping=lambda: stop.set,
                said=console.log,
            )
            stack.enter_context(server)
            console.log(f"status page at {server.url}")
        if not once:
            daemon.run()
    if failures:
        # Each failure has been logged; only the exit code remains.
        raise typer.Exit(1)
