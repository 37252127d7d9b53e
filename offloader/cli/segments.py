"""``pulsar-lake segments``: every segment of a topic, and the tier that a query reads it from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offloader.cli.options import ConfigOption, settings
from offloader.cli.render import ReportFormat, ReportOption, print_rows

if TYPE_CHECKING:
    from reader.model import Segment

COLUMNS = (
    "partition",
    "ledger",
    "state",
    "tier",
    "reason",
    "entries",
    "rows",
    "bytes",
    "min_publish_time",
    "max_publish_time",
    "closed_at",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def segments(
    topic: Annotated[str, typer.Argument(help="tenant/namespace/topic", show_default=False)],
    kind: ReportOption = ReportFormat.table,
    config: ConfigOption = None,
) -> None:
    """Print every segment: partition, ledger, state, tier, reason, entries, bytes, time range."""
    from reader.clients import Clients
    from reader.model import Topic
    from reader.plan import make_plan, take_snapshot

    found = settings(config)
    name = Topic.parse(topic)
    with Clients(found) as clients:
        plan = make_plan(clients, take_snapshot(clients, name).log_note())
    rows = [segment_row(one.segment) for one in plan.segments]
    print_rows(COLUMNS, rows, kind)


def segment_row(one: Segment) -> dict[str, Any]:
    """Return a segment as one row. Times are in UTC, and None if they are unknown."""
    return {
        "partition": one.partition.index,
        "ledger": one.ledger_id,
        "state": one.state,
        "tier": one.tier,
        "reason": str(one.reason),
        "entries": one.entries,
        "rows": one.rows,
        "bytes": one.bytes,
        "min_publish_time": _moment(one.min_publish_time),
        "max_publish_time": _moment(one.max_publish_time),
        "closed_at": _moment(None if one.closed_at is None else one.closed_at * 1000),
    }


def _moment(micros: int | None) -> datetime | int | None:
    if micros is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:  # closed by a broker whose clock is beyond the year 9999
        return micros
