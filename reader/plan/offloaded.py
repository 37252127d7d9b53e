"""What a topic's table holds: its segments by its commits, and ledgers of which no commit tells.

Log clean-up removes commits by age, and the status page reads the newest ones only. Of older
ledgers either the rows are read (``cold_part``) or the statistics of their files
(``older_ledgers``); both give them the same state, tier and reason.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from reader.model import Partition, Segment, SegmentState, Tier
from reader.model.columns import TIMESTAMP
from reader.model.reasons import Reason, TierReason
from reader.plan.cold_files import ColdFile, table_files
from reader.table import LoggedCommit, OffloadedLedger, TopicTable
from reader.table.log import recorded_ledgers


@dataclass(frozen=True, slots=True)
class ColdPart:
    """What one version of a topic's table holds: offloaded and lost segments, and its files."""

    segments: tuple[Segment, ...]
    files: tuple[ColdFile, ...]


@dataclass(frozen=True, slots=True)
class OlderLedgers:
    """What one file holds of ledgers ``first`` to ``last``, whose commits were not read.

    ``rows`` (None where the log does not say) and ``bytes`` are the whole file's; times: µs since
    the epoch, None where unknown. State, tier and reason are those of each of its segments.
    """

    partition: Partition
    first: int
    last: int
    rows: int | None
    bytes: int
    min_publish_time: int | None
    max_publish_time: int | None
    reason: TierReason
    state: SegmentState = "offloaded"
    tier: Tier = Tier.PARQUET


def cold_part(table: TopicTable) -> ColdPart:
    """All of the version. Where log clean-up has removed commits, the rows themselves are read."""
    commits = list(table.commits())
    logged = logged_part(table, commits)
    if commits and commits[-1].version == 0:
        return logged
    known = {(one.partition, one.ledger_id) for one in logged.segments}
    older = (one for one in _from_rows(table) if (one.partition, one.ledger_id) not in known)
    return ColdPart((*older, *logged.segments), logged.files)


def logged_part(table: TopicTable, commits: Iterable[LoggedCommit]) -> ColdPart:
    """The segments that ``commits`` (newest first) tell of, and all files of the version.

    The last record of a ledger counts. Raises CorruptError for one that cannot be decoded.
    """
    recorded = {(one.partition, one.ledger): one for one in recorded_ledgers(commits)}
    segments = tuple(_segment(table, one) for one in recorded.values())
    return ColdPart(segments, table_files(table))


def older_ledgers(
    table: TopicTable, files: Iterable[ColdFile], known: Iterable[Segment]
) -> list[OlderLedgers]:
    """Of each of the version's ``files``, its ledgers below the first ``known`` one of their
    partition. Files without statistics are left out."""
    oldest: dict[int, int] = {}
    for one in known:
        partition = one.partition.index
        oldest[partition] = min(one.ledger_id, oldest.get(partition, one.ledger_id))
    found = []
    for file in files:
        index, (first, last) = file.limit("__partition")[0], file.limit("__ledgerId")
        if index is None or first is None or last is None:
            continue
        end = oldest.get(index, last + 1)
        if first >= end:
            continue
        low, high = file.limit("__publishTime")
        found.append(
            OlderLedgers(
                partition=Partition(table.topic, index),
                first=first,
                last=min(last, end - 1),
                rows=file.rows,
                bytes=file.bytes,
                min_publish_time=low,
                max_publish_time=high,
                reason=_older_reason(table, index, first, low),
            )
        )
    return found


def _segment(table: TopicTable, one: OffloadedLedger) -> Segment:
    reason = _reason(table, one)
    return Segment(
        partition=Partition(table.topic, one.partition),
        ledger_id=one.ledger,
        state="lost" if one.lost else "offloaded",
        tier=Tier.PARQUET,
        reason=reason,
        last_entry=one.entries - 1,
        entries=one.entries,
        bytes=one.bytes,
        min_publish_time=one.min_publish_time,
        max_publish_time=one.max_publish_time,
        # How many are left, only the rows know.
        rows=one.rows if reason.expired_before is None else None,
    )


def _reason(table: TopicTable, one: OffloadedLedger) -> TierReason:
    if one.lost:
        return TierReason(Reason.LOST)
    expired = _expired_before(table, one.partition, one.ledger, one.min_publish_time)
    kind = Reason.DECLARED_LOST if one.declared_lost else Reason.IN_TABLE
    return TierReason(kind, one.tier, expired)


def _older_reason(table: TopicTable, partition: int, ledger: int, oldest: int | None) -> TierReason:
    expired = _expired_before(table, partition, ledger, oldest)
    return TierReason(Reason.OLDER_COMMIT, expired_before=expired)


def _expired_before(
    table: TopicTable, partition: int, ledger: int, oldest: int | None
) -> int | None:
    """Rows of the ledger published before this (ms) have expired; None: none has.

    ``oldest``: the least publish time that is known of it, µs.
    """
    before = table.topic_numbers.expired_before
    if before is None or oldest is None or oldest >= before * 1000:
        return None
    expired = table.numbers(Partition(table.topic, partition)).expired_upto.ledger
    return before if ledger <= expired else None


def _from_rows(table: TopicTable) -> list[Segment]:
    """A segment for each ledger of which the version has a row."""
    keys = ["__partition", "__ledgerId"]
    parts = []
    for batch in table.batches([*keys, "__entryId", "__publishTime"]):
        parts.append(
            pa.Table.from_batches([batch])
            .group_by(keys)
            .aggregate(
                [
                    ("__entryId", "max"),
                    ("__entryId", "count"),
                    ("__publishTime", "min"),
                    ("__publishTime", "max"),
                ]
            )
        )
    if not parts:
        return []
    total = (
        pa.concat_tables(parts)
        .group_by(keys)
        .aggregate(
            [
                ("__entryId_max", "max"),
                ("__entryId_count", "sum"),
                ("__publishTime_min", "min"),
                ("__publishTime_max", "max"),
            ]
        )
    )
    # As integers, which segments have: microseconds since 1970.
    for name in ("__publishTime_min_min", "__publishTime_max_max"):
        at = total.schema.get_field_index(name)
        total = total.set_column(at, name, total.column(at).cast(TIMESTAMP).cast(pa.int64()))
    found = []
    for row in total.to_pylist():
        index, ledger = row["__partition"], row["__ledgerId"]
        low, high = row["__publishTime_min_min"], row["__publishTime_max_max"]
        found.append(
            Segment(
                partition=Partition(table.topic, index),
                ledger_id=ledger,
                state="offloaded",
                tier=Tier.PARQUET,
                reason=_older_reason(table, index, ledger, low),
                last_entry=row["__entryId_max_max"],
                entries=row["__entryId_max_max"] + 1,
                bytes=0,
                min_publish_time=low,
                max_publish_time=high,
                rows=row["__entryId_count_sum"],
            )
        )
    return found
