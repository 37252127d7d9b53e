"""``pulsar-lake maintain``: compaction, expiry and vacuum of tables, now."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from offloader.cli.options import ConfigOption, settings
from offloader.cli.render import say, say_error
from reader.errors import PulsarLakeError
from reader.model import Topic

if TYPE_CHECKING:
    from offloader.maintenance.staged import StagingCleaner
    from offloader.maintenance.table_maintainer import TableMaintainer


def maintain(
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC",
            help="Topics, or patterns such as a/b/*; default: offload.topics of the settings. "
            "Only patterns need Pulsar; it is asked for aborted transactions if it is there.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done, and do nothing.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Compact small files, remove expired rows, delete files that nobody needs any more.

    Prints one line per topic, and one of what writes to topics have staged and left. The daemon
    does the same every offload.maintenance_interval. With [iceberg], the Iceberg table of each
    topic is brought to the newest version, before and after; one line more.
    """
    from offloader.iceberg import open_follower
    from offloader.maintenance.staged import StagingCleaner
    from offloader.maintenance.table_maintainer import TableMaintainer  # heavy: decoders
    from offloader.model import is_enabled
    from offloader.schedule import find_topics
    from reader.clients import Clients

    found = settings(config)
    failed = False
    with Clients(found) as clients, ExitStack() as stack:
        if not dry_run:
            clients.storage.require_exclusive_put()
        iceberg = open_follower(clients.storage, found)
        if iceberg is not None:
            stack.callback(iceberg.close)
        maintainer = TableMaintainer(
            clients.storage, found.offload, pulsar=clients, say=lambda text: say(text, err=True)
        )
        maintain_table = partial(_maintain_table, maintainer, dry_run=dry_run)

        def follow(topic: Topic) -> None:
            if iceberg is None:
                return
            if not dry_run:
                done = iceberg.follow(topic, clean=True)
                if not done.idle:
                    say(done)
            elif (lag := iceberg.lag(topic)) is not None and lag.versions != 0:
                say(f"{topic}: {lag}")

        # Before vacuum, too: an Iceberg table that was left behind has files that it deletes.
        steps = (follow, maintain_table) if dry_run else (follow, maintain_table, follow)
        for topic in find_topics(
            clients.admin,
            topics or found.offload.topics,
            on_unmatched=lambda text: say(f"warning: {text}", err=True),
        ):
            if not is_enabled(found.offload, topic):
                say(f"{topic}: disabled by offload.override")
                continue
            for step in steps:
                try:
                    step(topic)
                except Exception as error:  # noqa: BLE001 - no topic's failure stops the others
                    say_error(error, about=topic)
                    failed = True
        failed |= not _clean_staged(StagingCleaner(clients.storage), dry_run=dry_run)
    if failed:
        raise typer.Exit(1)


def _maintain_table(maintainer: TableMaintainer, topic: Topic, *, dry_run: bool) -> None:
    more = True
    while more:
        result = maintainer.maintain(topic, dry_run=dry_run, vacuum=True)
        say(result)
        more = result.more and not dry_run


def _clean_staged(cleaner: StagingCleaner, *, dry_run: bool) -> bool:
    """Delete files that writes have staged and left. Return False if any could not be."""
    try:
        staged = cleaner.clean(dry_run=dry_run)
    except PulsarLakeError as error:
        say_error(error, about="files staged by writes")
        return False
    if staged.files:
        say(f"{staged}: {'would be ' if dry_run else ''}deleted")
    for text in staged.damaged:
        say(f"error: {text}", err=True)
    return not staged.damaged
