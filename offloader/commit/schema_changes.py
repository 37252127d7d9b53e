"""What of a table is not rows: its first version, its columns, its properties.

Each change is a commit of its own, before the append that needs it. A stop in between leaves
columns without rows, or a recorded creation time: both true.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from deltalake import DeltaTable, Schema

from offloader.commit.actions import commit_properties
from offloader.commit.schema_compatibility import has_grown, same_type
from offloader.output import Addition
from offloader.parquet import PLAIN_NAME, statistics_columns
from reader import table as tables
from reader.errors import CommitConflictError, CorruptError
from reader.model import SchemaInfo
from reader.payload import same_origins
from reader.storage import Storage

_STATISTICS_KEY = "delta.dataSkippingStatsColumns"
_LISTED = re.compile(r"(?:`(?:[^`]|``)*`|[^`,])+")

_PROPERTIES = {
    "delta.checkpointInterval": "20",
    # Of delta-rs, which cleans up after a checkpoint: never what a version of this age needs.
    # Longer than any offload.vacuum_after, so that a version whose files are there can be opened.
    "delta.enableExpiredLogCleanup": "true",
    "delta.logRetentionDuration": "interval 30 days",
    # Our own vacuum goes by offload.vacuum_after; this one bounds an external writer's.
    "delta.deletedFileRetentionDuration": "interval 7 days",
}


def create_table(storage: Storage, addition: Addition) -> None:
    """The first version: columns and properties, no rows, no watermark. One of many wins."""
    uri = storage.table_uri(addition.topic)
    columns = addition.columns
    DeltaTable.create(
        uri,
        Schema.from_arrow(columns),
        mode="error",
        configuration={
            _STATISTICS_KEY: _listed(columns, statistics_columns(columns, addition.statistics)),
            tables.CLUSTER_KEY: addition.cluster,
            **_PROPERTIES,
            **_created(addition),
            **_partitions(addition),
            **_remembered((), addition),
        },
        storage_options=storage.delta_options() or None,
        commit_properties=commit_properties(),
        raise_if_key_not_exists=False,
    )


def evolve(table: tables.TopicTable, addition: Addition) -> bool:
    """Add the columns or properties that are missing, in one commit; return whether any was.

    Raises CommitConflictError if another offloader has given one of the names to another field.
    """
    _require_same_origins(table, addition)
    present = {field.name: field.type for field in table.schema}
    # A struct that has grown is a column to add, too: delta-rs adds its new members.
    missing = [
        field
        for field in addition.columns
        if field.name not in present or has_grown(present[field.name], field.type)
    ]
    if missing:
        table.handle.alter.add_columns(
            list(Schema.from_arrow(pa.schema(missing)).fields),
            commit_properties=commit_properties(),
        )
        return True
    there = table.configuration
    wanted = {k: v for k, v in _PROPERTIES.items() if k not in there} | _created(addition)
    wanted |= _remembered(table.schemas, addition)
    if addition.cluster:
        wanted[tables.CLUSTER_KEY] = addition.cluster
    wanted[_STATISTICS_KEY] = _listed(
        table.schema,
        (*recorded_statistics(table), *statistics_columns(table.schema, addition.statistics)),
    )
    changed = {k: v for k, v in wanted.items() if there.get(k) != v}
    if changed:
        table.handle.alter.set_table_properties(
            changed,
            raise_if_not_exists=False,
            commit_properties=commit_properties(transactions=_new_lives(addition, changed, there)),
        )
    return bool(changed)


def _new_lives(
    addition: Addition, changed: Mapping[str, str], there: Mapping[str, str]
) -> dict[str, int]:
    """Return the numbers of the log to set for partitions that were deleted and made again.

    What was expected next was expected of the earlier managed ledger, and so was the first ledger.
    """
    found: dict[str, int] = {}
    fields = tables.PartitionNumbers
    for step in addition.advances:
        key = tables.CREATED_KEY + step.partition.full_name
        if key in changed and key in there:
            found |= fields.earlier.set(step.partition, step.before)
            for field in (
                fields.expected,
                fields.open_ledger,
                fields.first,
                fields.compaction_start,
            ):
                found |= field.set(step.partition, None)
    return found


def _require_same_origins(table: tables.TopicTable, addition: Addition) -> None:
    there = {field.name: field for field in table.schema}
    for field in addition.fields:
        if field.name in there and not same_origins(there[field.name], field):
            raise CommitConflictError(
                f"column {field.name} of the table of {addition.topic} stands for another field "
                "than when the plan was made"
            )


def recorded_statistics(table: tables.TopicTable) -> tuple[str, ...]:
    """The columns with statistics, as the table has it."""
    listed = _LISTED.findall(table.configuration.get(_STATISTICS_KEY, ""))
    return tuple(one for one in listed if PLAIN_NAME.fullmatch(one))


def _listed(schema: pa.Schema, columns: Iterable[str]) -> str:
    """The value of the property.

    One field of each struct is in it, though it gets no statistics: where a struct has none,
    delta-rs 1.6 gives no statistics at all, of any column.
    """
    structs = (name for field in schema for name in _one_of_each_struct(field))
    return ",".join(dict.fromkeys((*columns, *structs)))


def _one_of_each_struct(field: pa.Field, above: str = "") -> Iterator[str]:
    if not pa.types.is_struct(field.type):
        return
    path = above + _quoted(field.name)
    members = [one for one in field.type.fields if not pa.types.is_struct(one.type)]
    # Other writers may collect them: rather not of floats (decision 15).
    for one in sorted(members, key=lambda member: pa.types.is_floating(member.type))[:1]:
        yield f"{path}.{_quoted(one.name)}"
    for member in field.type.fields:
        yield from _one_of_each_struct(member, f"{path}.")


def _quoted(name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def check_files(table: tables.TopicTable, addition: Addition) -> None:
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


def _remembered(known: Sequence[SchemaInfo], addition: Addition) -> dict[str, str]:
    """Return the property with the schema versions that the table is to remember, if it changes."""
    if not addition.schemas or tuple(known) == addition.schemas:
        return {}
    return {tables.SCHEMAS_KEY: tables.encode_schemas(addition.schemas)}


def _partitions(addition: Addition) -> dict[str, str]:
    """Return the property of a new table that says which partitions are older than the table."""
    if not addition.partitions:
        return {}
    return {tables.PARTITIONS_KEY: json.dumps(dict(addition.partitions), separators=(",", ":"))}


def _created(addition: Addition) -> dict[str, str]:
    return {
        tables.CREATED_KEY + step.partition.full_name: step.created_at
        for step in addition.advances
        if step.created_at and step.adds_ledgers
    }
