"""Files and watermarks into the Delta log, in one commit. What else commits: ``replace.py``.

1. One commit carries a ledger's files *and* ``txn(partition's full name, ledger id)``, and two
   more that say where the messages begin which it leaves incomplete, another which ledger is to
   be the next, and one for the topic where rows are ciphertext, or messages were lost.
2. It goes through a handle whose watermarks are those the plan was made on, and only if each
   grows. delta-rs gets no retries of its own: the log must not have moved since that handle.
   Moved by another commit that leaves our watermarks alone (compaction, new columns): a newer
   handle is checked in the same way and the same files are committed through it.
   Moved by another offloader: CommitConflictError, and the caller plans again.
3. After *any* error the log is read again before anything is concluded: a store may apply the PUT
   and then answer 500, and delta-rs then reports a conflict with itself. Every attempt of one
   addition carries the same id in its metadata, so a commit is known again.
4. Nothing here deletes a file.

New columns, and table properties, are commits of their own before the append. A stop in between
leaves columns without rows, or a recorded creation time: both true. Every commit of ours has an id
(``COMMIT_KEY``): one without is a stranger's (``foreign.py``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction

from offloader.commit.file_age import FRESH_MS, check_fresh
from offloader.commit.retry import commit_until_landed
from offloader.commit.schema_compatibility import has_grown, same_type
from offloader.commit.table_features import check_protocol
from offloader.model.files import WrittenFile
from offloader.parquet.statistics import statistics_columns
from reader.errors import (
    CommitConflictError,
    ConfigurationError,
    CorruptError,
)
from reader.model import Partition, Position, Topic
from reader.model.columns import METADATA
from reader.storage import Storage
from reader.table import (
    CLUSTER_KEY,
    CREATED_KEY,
    LEDGERS_KEY,
    LOST,
    OffloadedLedger,
    TopicTable,
    ciphertext_key,
    encode_ledgers,
    expected_key,
    gaps_key,
    reach_keys,
)
from reader.table.log import commit_info

__all__ = [
    "COMMIT_KEY",
    "SOURCE_KEY",
    "Addition",
    "Advance",
    "append",
    "landed",
    "recorded_statistics",
]

COMMIT_KEY = "pulsarlake.commit"
SOURCE_KEY = "pulsarlake.source"
STATISTICS_KEY = "delta.dataSkippingStatsColumns"

_PROPERTIES = {
    "delta.checkpointInterval": "20",
    # Of delta-rs, which cleans up after a checkpoint: never what a version of this age needs.
    # Longer than any offload.vacuum_after, so that a version whose files are there can be opened.
    "delta.enableExpiredLogCleanup": "true",
    "delta.logRetentionDuration": "interval 30 days",
    # Our own vacuum goes by offload.vacuum_after; this one bounds a stranger's.
    "delta.deletedFileRetentionDuration": "interval 7 days",
}


@dataclass(frozen=True, slots=True)
class Advance:
    """One partition's step: from the watermark ``before`` (-1: none) to ledger ``upto``.

    ``created_at``: the managed ledger's creation time, as the admin REST prints it. ``reach``:
    where the first chunked message begins that ``upto`` leaves incomplete; None: there is none.
    ``expected``: the first ledger above ``upto`` that has entries by now; None: none has.
    """

    partition: Partition
    before: int
    upto: int
    created_at: str
    reach: Position | None = None
    expected: int | None = None

    @property
    def transactions(self) -> list[Transaction]:
        """The watermark first. The others are said where they are none, too: they may have been."""
        reach = self.reach or Position(self.upto + 1, 0)
        found = {self.partition.full_name: self.upto}
        found |= zip(reach_keys(self.partition), (reach.ledger, reach.entry), strict=True)
        found[expected_key(self.partition)] = self.upto if self.expected is None else self.expected
        return [Transaction(name, version) for name, version in found.items()]


@dataclass(frozen=True, slots=True)
class Addition:
    """What one commit adds.

    ``fields``: the payload columns of ``files``, in the table's order. ``fresh_ms``: how old its
    files may be at the commit.
    """

    topic: Topic
    advances: tuple[Advance, ...]
    files: tuple[WrittenFile, ...]
    ledgers: tuple[OffloadedLedger, ...]
    fields: pa.Schema
    source: str
    cluster: str = ""
    statistics: tuple[str, ...] = ()
    fresh_ms: int = FRESH_MS

    @property
    def columns(self) -> pa.Schema:
        return pa.schema([*self.fields, *METADATA])

    @property
    def transactions(self) -> list[Transaction]:
        found = [one for step in self.advances for one in step.transactions]
        upto = max(step.upto for step in self.advances)
        if any(file.ciphertexts for file in self.files):
            found.append(Transaction(ciphertext_key(self.topic), upto))
        if any(one.tier == LOST for one in self.ledgers):
            found.append(Transaction(gaps_key(self.topic), upto))
        return found


def append(
    storage: Storage,
    table: TopicTable | None,
    addition: Addition,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> TopicTable:
    """Commit ``addition`` on top of ``table`` (None: there is none yet); the table after it.

    Raises CommitConflictError when a watermark is not the planned one any more, or a file too old
    (``fresh.py``), CorruptError when a file does not fit the table, ConfigurationError for another
    cluster's table, UnsupportedError for one that is not ours any more (``protocol.py``), and
    UnavailableError when the storage fails; the commit may then have landed all the same.
    """
    commit_id = uuid.uuid4().hex

    def attempt(on: TopicTable | None) -> None:
        if on is None:
            _create(storage, addition)
            return
        _check_watermarks(on, addition)
        _check_cluster(on, addition)
        check_protocol(on)
        if not _evolve(on, addition):
            _check_files(on, addition)
            check_fresh(addition.files, addition.fresh_ms, clock_ms())
            _commit(on, addition, commit_id)

    def found(newest: TopicTable, since: int) -> TopicTable | None:
        return newest if landed(storage, newest, addition, commit_id, since=since) else None

    return commit_until_landed(
        storage, addition.topic, table, attempt=attempt, landed=found, sleep=sleep
    )


def landed(
    storage: Storage, table: TopicTable, addition: Addition, commit_id: str, *, since: int
) -> bool:
    """Whether the log, after version ``since``, has the addition's commit.

    By its id in the commits' metadata, or by its files: compaction may already have replaced the
    files, and clean-up the commit, but not both.
    """
    for version in range(since + 1, table.version + 1):
        info = commit_info(storage, addition.topic, version)
        if info is not None and info.get(COMMIT_KEY) == commit_id:
            return True
    if not addition.files or table.version == since:
        return False
    there = table.paths()
    return any(file.path in there for file in addition.files)


def _properties(commit_id: str = "", addition: Addition | None = None) -> CommitProperties:
    """No retries by delta-rs: see rule 2. Without an addition, the mark that it is ours."""
    if addition is None:
        metadata = {COMMIT_KEY: uuid.uuid4().hex}
        return CommitProperties(max_commit_retries=0, custom_metadata=metadata)
    return CommitProperties(
        max_commit_retries=0,
        custom_metadata={
            LEDGERS_KEY: encode_ledgers(addition.ledgers),
            SOURCE_KEY: addition.source,
            COMMIT_KEY: commit_id,
        },
        app_transactions=addition.transactions,
    )


def _create(storage: Storage, addition: Addition) -> None:
    """The first version: columns and properties, no rows, no watermark. One of many wins."""
    uri = storage.table_uri(addition.topic)
    columns = addition.columns
    DeltaTable.create(
        uri,
        Schema.from_arrow(columns),
        mode="error",
        configuration={
            STATISTICS_KEY: ",".join(statistics_columns(columns, addition.statistics)),
            CLUSTER_KEY: addition.cluster,
            **_PROPERTIES,
            **_created(addition),
        },
        storage_options=storage.delta_options() or None,
        commit_properties=_properties(),
        raise_if_key_not_exists=False,
    )


def _created(addition: Addition) -> dict[str, str]:
    return {
        CREATED_KEY + step.partition.full_name: step.created_at
        for step in addition.advances
        if step.created_at
    }


def _check_watermarks(table: TopicTable, addition: Addition) -> None:
    for step in addition.advances:
        found = table.watermark(step.partition)
        if found != step.before or step.upto <= found:
            raise CommitConflictError(
                f"the watermark of {step.partition} is {found}, the plan was made at {step.before}"
            )


def _check_cluster(table: TopicTable, addition: Addition) -> None:
    recorded = table.configuration.get(CLUSTER_KEY, "")
    if recorded and addition.cluster and recorded != addition.cluster:
        raise ConfigurationError(
            f"the table of {addition.topic} was filled from cluster {recorded!r}, "
            f"not {addition.cluster!r}",
            hint=f"point storage.uri elsewhere, or move the table at {table.uri} away",
        )


def _evolve(table: TopicTable, addition: Addition) -> bool:
    """Add what columns or properties are missing, one commit; whether there was any."""
    present = {field.name: field.type for field in table.schema}
    # A struct that has grown is a column to add, too: delta-rs adds its new members.
    missing = [
        field
        for field in addition.columns
        if field.name not in present or has_grown(present[field.name], field.type)
    ]
    if missing:
        table.handle.alter.add_columns(
            list(Schema.from_arrow(pa.schema(missing)).fields), commit_properties=_properties()
        )
        return True
    there = table.configuration
    wanted = {k: v for k, v in _PROPERTIES.items() if k not in there} | _created(addition)
    if addition.cluster:
        wanted[CLUSTER_KEY] = addition.cluster
    columns = dict.fromkeys(
        (*recorded_statistics(table), *statistics_columns(table.schema, addition.statistics))
    )
    wanted[STATISTICS_KEY] = ",".join(columns)
    changed = {k: v for k, v in wanted.items() if there.get(k) != v}
    if changed:
        table.handle.alter.set_table_properties(
            changed, raise_if_not_exists=False, commit_properties=_properties()
        )
    return bool(changed)


def recorded_statistics(table: TopicTable) -> tuple[str, ...]:
    """The columns with statistics, as the table has it."""
    return tuple(one for one in table.configuration.get(STATISTICS_KEY, "").split(",") if one)


def _check_files(table: TopicTable, addition: Addition) -> None:
    """delta-rs takes files that no reader of the table can read: compare column by column."""
    for file in addition.files:
        for field in pa.ipc.read_schema(pa.py_buffer(file.schema)):
            known = field.name in table.schema.names
            expected = table.schema.field(field.name).type if known else None
            if expected is None or not same_type(field.type, expected):
                raise CorruptError(
                    f"{file.path} has column {field.name} as {field.type}, "
                    f"the table of {addition.topic} as {expected}"
                )


def _commit(table: TopicTable, addition: Addition, commit_id: str) -> None:
    actions = [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={},
            modification_time=file.modified,
            data_change=True,
            stats=file.statistics,
        )
        for file in addition.files
    ]
    table.handle.create_write_transaction(
        list(actions),
        mode="append",
        schema=table.handle.schema(),
        commit_properties=_properties(commit_id, addition),
    )
