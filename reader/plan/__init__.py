"""From a topic to what a query reads of it: snapshot, then plan. Values, and who makes them.

    snapshot        Snapshot, take_snapshot: ledgers, end positions, schemas, table version
    snapshot_token  a snapshot's hot half as one token, safe in an identifier
    tier_choice     where a tier is chosen: a partition's ledgers as segments
    completeness    refuses what would be fewer rows than there are
    data_loss       messages that were lost before they were offloaded
    history         whether Pulsar's ledgers and the table's are of one history
    filters         Filter: filters of rows as values
    plan            Plan, make_plan: each segment's tier, why, whether and what is read of it
    reads           Read: what a plan reads, as values that reader.sources executes
    row_filter      RowFilter: what an Arrow filter uses, and what can have no row that matches it
    pruning         what predicates on partition, ledger and publish time leave out
    publish_times   publish times that reads have learned, kept from query to query
    offloaded       the segments that the table holds, by its log, its rows or its files
    cold_files      the table's files, and which of them filters leave to read
    splitting       segments cut into splits, and splits put together for tasks

Nothing here reads a row for its own sake: that is ``reader.sources``'s. Imports ``reader.config``,
``reader.errors``, ``reader.model``, ``reader.payload``, ``reader.private_directory``,
``reader.private_keys``, ``reader.pulsar``, ``reader.storage`` and ``reader.table``.
"""

from reader.plan.cold_files import Bounds, ColdFile, files_to_read, table_files
from reader.plan.completeness import (
    CompactedPart,
    compaction_start,
    given_up,
    held_table,
    migrated_note,
    refuse_recovering,
)
from reader.plan.data_loss import (
    DataLoss,
    declared_losses,
    describe_data_loss,
    loss_at,
    new_losses,
    recorded_losses,
)
from reader.plan.filters import AllOf, AnyOf, Filter, NullTest, Predicate, Unequal, behind, between
from reader.plan.history import (
    HistoryChecks,
    check_same_topic,
    first_of_life,
    last_closed,
    last_of_earlier_lives,
)
from reader.plan.offloaded import OlderLedgers, logged_part, older_ledgers
from reader.plan.plan import Known, Plan, make_plan, narrow_plan, plan_snapshot
from reader.plan.pruning import publish_range
from reader.plan.publish_times import LearnedTimes, PublishTimeStore
from reader.plan.reads import (
    CompactedRead,
    CountRead,
    EncryptedRead,
    FilesRead,
    Read,
    SplitsRead,
    plan_reads,
)
from reader.plan.row_filter import RowFilter, both, guarantee, may_match
from reader.plan.snapshot import (
    PlanningAdmin,
    Snapshot,
    creation_times,
    known_schemas,
    list_ledgers,
    payload_columns,
    pinned_table,
    snapshot_of,
    take_snapshot,
)
from reader.plan.snapshot_token import from_token, to_token, token_size
from reader.plan.splitting import cut_ranges, pack_splits, whole
from reader.plan.tier_choice import partition_segments

__all__ = [
    "AllOf",
    "AnyOf",
    "Bounds",
    "ColdFile",
    "CompactedPart",
    "CompactedRead",
    "CountRead",
    "DataLoss",
    "EncryptedRead",
    "FilesRead",
    "Filter",
    "HistoryChecks",
    "Known",
    "LearnedTimes",
    "NullTest",
    "OlderLedgers",
    "Plan",
    "PlanningAdmin",
    "Predicate",
    "PublishTimeStore",
    "Read",
    "RowFilter",
    "Snapshot",
    "SplitsRead",
    "Unequal",
    "behind",
    "between",
    "both",
    "check_same_topic",
    "compaction_start",
    "creation_times",
    "cut_ranges",
    "declared_losses",
    "describe_data_loss",
    "files_to_read",
    "first_of_life",
    "from_token",
    "given_up",
    "guarantee",
    "held_table",
    "known_schemas",
    "last_closed",
    "last_of_earlier_lives",
    "list_ledgers",
    "logged_part",
    "loss_at",
    "make_plan",
    "may_match",
    "migrated_note",
    "narrow_plan",
    "new_losses",
    "older_ledgers",
    "pack_splits",
    "partition_segments",
    "payload_columns",
    "pinned_table",
    "plan_reads",
    "plan_snapshot",
    "publish_range",
    "recorded_losses",
    "refuse_recovering",
    "snapshot_of",
    "table_files",
    "take_snapshot",
    "to_token",
    "token_size",
    "whole",
]
