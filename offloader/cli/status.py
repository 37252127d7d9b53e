"""``pulsar-lake status``: watermarks, lag, last commit and errors of each topic."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from offloader.cli.options import ConfigOption, TopicsArgument, settings
from offloader.cli.render import ReportFormat, ReportOption, print_rows, say
from reader.errors import ConfigurationError

if TYPE_CHECKING:
    from offloader.service import LastError, TopicStatus

_COLUMNS = (
    "topic",
    "partition",
    "watermark",
    "hold",
    "lag_ledgers",
    "lag_tiered",
    "lag_bytes",
    "lag_seconds",
    "last_commit",
    "rows",
)


def status(
    topics: TopicsArgument = None,
    kind: ReportOption = ReportFormat.table,
    config: ConfigOption = None,
) -> None:
    """Print watermarks, lag in ledgers, bytes and seconds, last commit, errors and warnings.

    With [iceberg]: how far each Iceberg table is behind its Delta table.
    """
    from offloader.iceberg import open_follower
    from offloader.schedule import find_topics
    from offloader.service import LastErrors, read_lags, topic_status
    from reader.clients import Clients

    found = settings(config)
    subscription = found.offload.subscription
    failures: Mapping[str, LastError] = {}
    try:
        failures = LastErrors(found.pulsar.admin_url, found.storage.uri).read()
    except ConfigurationError as error:  # none is not what it says
        say(f"warning: {error}", err=True)
    clock_ms = time.time_ns() // 1_000_000
    with Clients(found) as clients:
        asked = find_topics(
            clients.admin,
            topics or found.offload.topics,
            on_unmatched=lambda text: say(f"warning: {text}", err=True),
        )
        iceberg = read_lags(lambda: open_follower(clients.storage, found), asked)
        answers = [
            topic_status(
                clients, subscription, topic, clock_ms=clock_ms, failures=failures, iceberg=iceberg
            )
            for topic in asked
        ]
    if kind is ReportFormat.json:
        say(json.dumps([one.to_json() for one in answers], indent=2))
        return
    print_rows(_COLUMNS, [row for one in answers for row in _rows(one)], kind)
    if any(one.backlog for one in answers):
        say(f"as of {datetime.fromtimestamp(clock_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z")
    for one in answers:
        for text in one.errors:
            say(f"error: {one.topic}: {text}")
        for text in one.warnings:
            say(f"warning: {one.topic}: {text}")
        if one.iceberg:
            say(f"{one.topic}: {one.iceberg}")
        if one.expired_before:
            say(f"{one.topic}: rows published before {one.expired_before} have expired")


def _rows(one: TopicStatus) -> list[dict[str, Any]]:
    """Return one row for each partition."""
    from offloader.model import size_text

    last = one.last_commit
    moment = datetime.fromtimestamp(last.at_ms / 1000, UTC) if last else None
    commit = f"version {last.version} {moment:%Y-%m-%d %H:%M:%S}Z" if last else "none"
    return [
        {
            "topic": one.topic,
            "partition": part.partition,
            "watermark": part.watermark,
            "hold": part.hold or "none",
            "lag_ledgers": part.lag_ledgers,
            "lag_tiered": part.lag_tiered,
            "lag_bytes": size_text(part.lag_bytes),
            "lag_seconds": round(part.lag_seconds),
            "last_commit": commit,
            "rows": last.rows if last else 0,
        }
        for part in one.partitions
    ]
