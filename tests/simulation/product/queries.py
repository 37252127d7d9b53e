"""What a query gives: a snapshot, its plan, and the rows that tasks and Spark would read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from reader.clients import Clients
from reader.model import Topic
from reader.model.columns import FIRST_CHUNK
from reader.model.row_kinds import KIND_COLUMN
from reader.model.row_kinds import RowKind as StoredKind
from reader.payload import payload_fields
from reader.plan import Plan, Predicate, from_token, make_plan, take_snapshot, to_token
from reader.plan.reads import FilesRead, SplitsRead
from reader.plan.snapshot import Snapshot
from reader.sources import RowFormat, read_rows
from testbed.simulation import Row, RowKind, SchemaRegistry, life_of, message_of, mirrored

_PLACE = ("__partition", "__ledgerId", "__entryId", "__batchIndex")
METADATA = (
    *_PLACE,
    "__publishTime",
    "__schemaVersion",
    *FIRST_CHUNK,
    KIND_COLUMN,
    "__error",
    "__rescued",
)

_NO_DEFINITION = "schema version"
_NO_VERSION = (
    _NO_DEFINITION,
    "the message has no schema version",
    "malformed Avro",
    "the value is binary, its column is another type",
)
"""Of plain bytes in a topic that has, or had, a definition."""
_RESCUED = {StoredKind.UNMATCHED: RowKind.STRAY, StoredKind.INCOMPLETE: RowKind.GIVEN_UP}


@dataclass(frozen=True, slots=True)
class Definitions:
    """The schema's definitions, by the registry and by what a snapshot knows.

    ``registry`` None: any row may be of one that is forgotten. ``known``: version and time of
    each in the snapshot.
    """

    registry: SchemaRegistry | None = None
    known: frozenset[tuple[int, int]] = frozenset()

    def may_be_forgotten(self, message: bytes, version: int | None) -> bool:
        """Return whether the message's definition may be one that the product cannot know.

        Nothing is known of a message without a version if the registry has, or had, a schema.
        """
        if self.registry is None:
            return True
        if version is None:
            return bool(self.registry.times or self.registry.life)
        return life_of(message) < self.registry.life or version < self.registry.first

    def may_be_confused(self, message: bytes, version: int) -> bool:
        """Return whether the definition of an earlier life may decode a message unnoticed.

        As decision 36 says: the earlier life is known, and the message's own definition came and
        went between two commits.
        """
        if self.registry is None:
            return False
        life, seen = life_of(message), self.registry.seen
        is_listed = (version, self.registry.registered.get((life, version))) in self.known
        earlier = any(older < life and number == version for older, number in seen)
        return earlier and (life, version) not in seen and not is_listed


@dataclass(frozen=True, slots=True)
class PinnedQuery:
    """A query whose snapshot was taken. ``token``: its hot half goes through one, as in Spark."""

    plan: Plan
    token: str | None
    predicates: tuple[Predicate, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns that are read."""
        return _names(self.plan.snapshot)

    def rows(self, clients: Clients) -> list[Row]:
        """Run it. Raises PulsarLakeError."""
        snapshot = self.plan.snapshot
        hot = self.plan
        if self.token is not None:
            again = replace(
                from_token(clients.admin, snapshot.topic, self.token), cold=(), unreadable=()
            )
            hot = make_plan(
                clients, replace(again, version=None), self.names, self.predicates, describe=False
            )
        columns = pa.schema([snapshot.columns.field(name) for name in self.names])
        batches = list(read_cold_files(clients, self.plan, columns))
        form = RowFormat.of(clients.settings, hot.snapshot, columns)
        batches += read_rows(clients, SplitsRead(hot.splits), form)
        state = clients.state  # type: ignore[attr-defined]
        definitions = Definitions(
            state.topics[snapshot.topic.full_name].schema,
            frozenset((info.version, info.timestamp) for info in snapshot.schemas),
        )
        return [row for batch in batches for row in rows_of(batch, self.predicates, definitions)]


def pin(
    clients: Clients,
    topic: Topic,
    *,
    tiers: str | None = None,
    published_from: int | None = None,
    token: bool = False,
) -> PinnedQuery:
    """A query of all columns. ``published_from``: µs, a condition that prunes.

    Raises PulsarLakeError.
    """
    predicates: Sequence[Predicate] = ()
    if published_from is not None:
        predicates = (Predicate("__publishTime", ">=", (published_from,)),)
    snapshot = with_value(take_snapshot(clients, topic, tiers=tiers))
    plan = make_plan(clients, snapshot, _names(snapshot), predicates)
    return PinnedQuery(plan, to_token(snapshot) if token else None, tuple(predicates))


def _names(snapshot: Snapshot) -> tuple[str, ...]:
    return *METADATA, *snapshot.fields.names


def with_value(snapshot: Snapshot) -> Snapshot:
    """A topic without schema and table has its column all the same."""
    if "value" in snapshot.fields.names:
        return snapshot
    return replace(snapshot, fields=payload_fields([]))


def count(clients: Clients, topic: Topic) -> int:
    """``count(*)``. Raises PulsarLakeError."""
    snapshot = take_snapshot(clients, topic)
    plan = make_plan(clients, snapshot, ())
    nothing = pa.schema([])
    form = RowFormat(snapshot.fields, snapshot.schemas, nothing)
    found = plan.counted
    found += sum(int(b.num_rows) for b in read_rows(clients, SplitsRead(plan.splits), form))
    return found + sum(int(b.num_rows) for b in read_cold_files(clients, plan, nothing))


def read_cold_files(clients: Clients, plan: Plan, columns: pa.Schema) -> list[pa.RecordBatch]:
    """Return the rows of the files that a plan reads. Raises PulsarLakeError."""
    files = tuple(one.file for one in plan.cold if one.read)
    form = RowFormat(plan.snapshot.fields, (), columns)
    return [*read_rows(clients, FilesRead(plan.topic, plan.version, files), form)]


def rows_of(
    batch: pa.RecordBatch, predicates: Sequence[Predicate], definitions: Definitions = Definitions()
) -> list[Row]:
    """Return the rows of a batch."""
    low = predicates[0].values[0] if predicates else None
    times = batch.column("__publishTime").cast(pa.int64()).to_pylist()
    return [
        (tuple(row[name] for name in _PLACE), *_content(row, definitions))
        for row, at in zip(batch.drop_columns("__publishTime").to_pylist(), times, strict=True)
        if low is None or at >= low
    ]


def _content(row: Mapping[str, Any], definitions: Definitions) -> tuple[bytes | None, RowKind]:
    payload = {name: value for name, value in row.items() if name not in METADATA}
    empty = all(value is None for value in payload.values())
    error, rescued = row["__error"], row["__rescued"]
    if error is None and rescued is None and row[KIND_COLUMN] == StoredKind.MESSAGE:
        version = row["__schemaVersion"]
        if version is None:
            return payload["value"], RowKind.MESSAGE
        if "value_2" in payload:  # the table began with messages without a schema
            payload["value"] = payload.pop("value_2")
        if empty:
            return None, RowKind.MESSAGE
        if found := message_of(payload, version):
            return found, RowKind.MESSAGE
        other = message_of(mirrored(payload, version), version)
        if other and definitions.may_be_confused(other, version):
            return other, RowKind.MESSAGE
        return None, RowKind.UNEXPECTED
    if error is not None and rescued is not None and empty:
        if row[KIND_COLUMN] in _RESCUED:
            return rescued, _RESCUED[row[KIND_COLUMN]]
        if (
            row[KIND_COLUMN] == StoredKind.UNDECODABLE
            and error.startswith(_NO_VERSION if row["__schemaVersion"] is None else _NO_DEFINITION)
            and definitions.may_be_forgotten(rescued, row["__schemaVersion"])
        ):
            return rescued, RowKind.MESSAGE
    return rescued, RowKind.UNEXPECTED
