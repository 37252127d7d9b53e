"""Each topic's status: its table's log compared with Pulsar's ledger lists, and all problems."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from offloader.backlog import topic_backlog
from offloader.commit import ExternalCommit, external_commit
from offloader.model import Backlog, IcebergLag, TopicBacklog
from offloader.service.last_errors import LastError, Work, key_of
from offloader.subscription import KindReader, PolicyReader, is_ended, shadow_note, unsafe_settings
from offloader.subscription.hold import missing
from reader import plan
from reader.errors import PulsarLakeError
from reader.model import Partition, Topic
from reader.pulsar import PartitionLedgers
from reader.storage import Storage
from reader.table import LoggedCommit, TopicTable


class StatusAdmin(plan.PlanningAdmin, PolicyReader, KindReader, Protocol):
    """What a status asks of Pulsar (``AdminClient``)."""


class StatusClients(Protocol):
    """What a status asks of ``Clients``."""

    @property
    def admin(self) -> StatusAdmin: ...
    @property
    def storage(self) -> Storage: ...


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition. The lag is of sealed ledgers with entries that the table does not have.

    ``watermark``: -1 where nothing is in the table. ``hold``: the next entry that Pulsar keeps
    for us ("ledger:entry"), None without a hold. ``lag_seconds``: since the oldest was closed.
    ``lag_tiered``: how many of these ledgers are in Pulsar's own tiered storage.
    """

    partition: int
    watermark: int
    hold: str | None
    lag_ledgers: int
    lag_bytes: int
    lag_seconds: float
    lag_tiered: int

    @classmethod
    def of(cls, backlog: Backlog, now: float) -> PartitionStatus:
        """As it is at ``now``, seconds since the epoch."""
        return cls(
            partition=backlog.partition.index,
            watermark=backlog.watermark,
            hold=None if backlog.hold is None else str(backlog.hold),
            lag_ledgers=backlog.ledgers,
            lag_bytes=backlog.sealed,
            lag_seconds=backlog.lag_seconds(now),
            lag_tiered=backlog.tiered,
        )


@dataclass(frozen=True, slots=True)
class LastCommit:
    """The newest commit that added ledgers. ``at_ms``: ms since the epoch."""

    version: int
    at_ms: int
    ledgers: int
    rows: int


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One topic at ``now`` (s since the epoch): what is not in its table, and all that is wrong.

    ``backlog``: None where Pulsar or the storage did not answer. ``warnings``: settings of Pulsar
    that would delete what is not in the table yet, harmless commits of external writers, that it is
    a shadow of another topic, or was migrated to a scalable one.
    ``expired_before``: rows published earlier have expired (UTC). ``iceberg``: None where that was
    not asked for, or there is no table.
    """

    topic: str
    now: float
    backlog: TopicBacklog | None
    last_commit: LastCommit | None
    errors: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    expired_before: str | None = None
    iceberg: IcebergLag | None = None

    @property
    def partitions(self) -> tuple[PartitionStatus, ...]:
        """Their lags; none without a backlog."""
        found = self.backlog.partitions if self.backlog else ()
        return tuple(PartitionStatus.of(one, self.now) for one in found)

    @property
    def lag_ledgers(self) -> int:
        return self.backlog.ledgers if self.backlog else 0

    @property
    def lag_bytes(self) -> int:
        return self.backlog.sealed if self.backlog else 0

    @property
    def lag_seconds(self) -> float:
        return self.backlog.lag_seconds(self.now) if self.backlog else 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain values, the lags of all partitions together included.

        ``observed_at``: when Pulsar was asked for what they are of, s since the epoch, or None.
        """
        return {
            "topic": self.topic,
            "observed_at": self.backlog.at if self.backlog else None,
            "partitions": [asdict(one) for one in self.partitions],
            "last_commit": asdict(self.last_commit) if self.last_commit else None,
            "errors": self.errors,
            "warnings": self.warnings,
            "expired_before": self.expired_before,
            "iceberg": asdict(self.iceberg) if self.iceberg else None,
            "lag_ledgers": self.lag_ledgers,
            "lag_bytes": self.lag_bytes,
            "lag_seconds": self.lag_seconds,
        }


def topic_status(
    clients: StatusClients,
    subscription: str,
    topic: Topic,
    *,
    clock_ms: int,
    failures: Mapping[str, LastError],
    iceberg: Callable[[Topic], IcebergLag | None] = lambda topic: None,
    elapsed: Callable[[], float] = time.monotonic,
) -> TopicStatus:
    """The topic's status at ``clock_ms``, now. What cannot be found out is among its errors.

    ``iceberg``: how far its Iceberg table is behind. ``elapsed``: seconds of a monotonic clock.
    """
    asked = elapsed()
    errors = _failed(failures, topic)
    warnings: list[str] = []
    found: Mapping[Partition, PartitionLedgers] = {}
    backlog: TopicBacklog | None = None
    table: TopicTable | None = None
    last: LastCommit | None = None
    try:
        found = plan.list_ledgers(clients.admin, clients.admin.partitions(topic))
        shadow = shadow_note(clients.admin, topic, warnings.append)
        migrated = plan.migrated_note(clients.admin, topic) if is_ended(found) else None
        warnings += [one for one in (shadow, migrated) if one is not None]
        errors += [
            f"{one}: no subscription {subscription}, "
            "so Pulsar may delete what is not in the table yet"
            for one in (missing(found, subscription) if shadow is None else ())
        ]
        plan.refuse_recovering(found)  # or their lag would be nothing
    except PulsarLakeError as error:
        errors.append(str(error))
    try:
        table = TopicTable.open(clients.storage, topic)
        if found:
            backlog = topic_backlog(
                found.values(),
                {one: table.watermark(one) for one in found} if table else {},
                at=clock_ms / 1000,
                asked=asked,
                read=asked,
                version=table.version if table else None,
                subscription=subscription,
            )
        if table is not None:
            external: list[ExternalCommit] = []
            commits = list(table.commits())
            for logged in commits:
                if not logged.id:
                    external.append(external_commit(logged))
                if last is None:
                    last = _last_commit(logged)
            for commit in reversed(external):  # oldest first
                (errors if commit.touches_files else warnings).append(str(commit))
            plan.HistoryChecks().check(clients.admin, table, found, commits)
            errors += plan.describe_data_loss(table, found)
        uri = clients.storage.table_uri(topic)
        plan.held_table(
            clients.admin, table, found, uri, lambda: TopicTable.open(clients.storage, topic)
        )
    except PulsarLakeError as error:
        errors.append(str(error))
    behind: IcebergLag | None = None
    try:
        behind = iceberg(topic)
    except PulsarLakeError as error:
        errors.append(str(error))
    return TopicStatus(
        topic=topic.local_name,
        now=clock_ms / 1000,
        backlog=backlog,
        last_commit=last,
        errors=tuple(" ".join(text.split()) for text in errors),
        warnings=(*warnings, *(_warnings(clients.admin, topic) if found else ())),
        expired_before=_expired_before(table) if table else None,
        iceberg=behind,
    )


def _failed(failures: Mapping[str, LastError], topic: Topic) -> list[str]:
    """What the daemon's last work of each kind failed with, if it did."""
    found = []
    works: tuple[Work, ...] = ("turn", "maintenance", "Iceberg")
    for what in works:
        if (failure := failures.get(key_of(topic, what))) is not None:
            again = datetime.fromtimestamp(failure.next_try, UTC)
            found.append(
                f"last {what} ({failure.times} in a row): {failure.error}; "
                f"next try {again:%Y-%m-%d %H:%M:%S}Z"
            )
    return found


def _expired_before(table: TopicTable) -> str | None:
    at = table.topic_numbers.expired_before
    return None if at is None else f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"


def _warnings(admin: PolicyReader, topic: Topic) -> tuple[str, ...]:
    try:
        return unsafe_settings(admin, topic)
    except PulsarLakeError as error:
        return (str(error),)


def _last_commit(commit: LoggedCommit) -> LastCommit | None:
    """None where it added no ledgers."""
    ledgers = commit.ledgers
    if not ledgers:
        return None
    return LastCommit(
        version=commit.version,
        at_ms=commit.at_ms,
        ledgers=len(ledgers),
        rows=sum(one.rows for one in ledgers),
    )
