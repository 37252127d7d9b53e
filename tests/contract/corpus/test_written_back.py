"""What was read is written back: every kind of schema, from one topic to another like it.

The Java client reads both, and must read the same of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from offloader.config import Config
from reader import open_topic
from reader.clients import Clients
from reader.encode import WRITABLE
from reader.errors import UnsupportedError
from reader.model import SchemaInfo, Topic
from reader.payload import payload_fields
from reader.sources import conform
from testbed.admin import Admin
from testbed.oracle import Json, Oracle
from tests.contract.corpus import Kind
from tests.contract.corpus.topics.schemas import CASE_KINDS
from tests.contract.corpus.world import Outcomes, World
from tests.contract.rows import plain
from tests.support.writing import write_rows

# Of these nothing can be written, and the error says why.
UNWRITABLE = ("protobuf-flat", "protobuf-nested")
# Rows are written by the newest schema: what the others read of these has columns of its own.
OF_SEVERAL_TYPES = ("mixed-keyvalue", "mixed-encodings")
# Of these the newest schema has written nothing that is read without a problem.
WITHOUT_ROWS = ("avro-broken", "json-broken", "mixed-types", "edges-local_time")
# Java's generic reader shows a JSON payload as it stands. These rows were written in another form
# than the schema's own, which is what the copy has: the same values, but not the same JSON.
OTHER_FORMS: dict[str, list[tuple[Json, Json]]] = {
    "json-loose": [
        ({"ID": "8", "Name": "go"}, {"id": 8, "name": "go"}),
        ({"at": "1970-01-01T01:00:05.25+01:00"}, {"at": 5250}),
        ({"at": 5.25}, {"at": 5250}),
    ]
}
_COMPARED = (
    "has_key",
    "key",
    "key_base64",
    "ordering_key",
    "properties",
    "event_time",
    "deliver_at",
    "null",
    "value",
    "value_error",
)


@pytest.fixture(scope="module")
def settings(contract_config: Config) -> Config:
    """Settings of which `json_times` may be changed."""
    pulsar = contract_config.pulsar.model_copy(update={"json_times": {}})
    return contract_config.model_copy(update={"pulsar": pulsar})


def rows_of(config: Config, topic: str, columns: list[str], version: int | None) -> pa.Table:
    """The rows that a schema version wrote and that were read without a problem, in order.

    None: the topic has no schema. A message without a version is read by the schema, but Java's
    client shows its bytes.
    """
    wanted = [*columns, "__partition", "__ledgerId", "__entryId", "__batchIndex", "__error"]
    with open_topic(config, topic) as opened:
        table = opened.scan(columns=[*wanted, "__schemaVersion"]).read_all()
    good = [
        row["__error"] is None and row["__schemaVersion"] == version
        for row in table.select(["__error", "__schemaVersion"]).to_pylist()
    ]
    order = [(one, "ascending") for one in wanted[len(columns) : -1]]
    return table.filter(pa.array(good, pa.bool_())).sort_by(order).select(columns)


def as_written(rows: pa.Table, schema: SchemaInfo | None) -> list[pa.RecordBatch]:
    """In small batches, with the members of structs that the schema has, and no others."""
    own = payload_fields([] if schema is None else [schema])
    fields = [own.field(f.name) if f.name in own.names else f for f in rows.schema]
    return [conform(one, pa.schema(fields)) for one in rows.to_batches(max_chunksize=7)]


def written_columns(schema: SchemaInfo | None) -> list[str]:
    return [*payload_fields([] if schema is None else [schema]).names, *WRITABLE]


@dataclass(frozen=True)
class Copied:
    """What was written to a copy: the rows that were meant, and those that were read of it."""

    wanted: pa.Table
    again: pa.Table
    java: list[Json]


_WRITTEN = [kind for kind in CASE_KINDS if kind.name not in OF_SEVERAL_TYPES]


@pytest.fixture(scope="module")
def copies(world: World, settings: Config, oracle: Oracle, admin: Admin) -> Iterator[Outcomes]:
    """Each topic written to another one."""

    def copy(kind: Kind) -> Copied | None:
        topic = world.topic(kind)
        schemas = clients.admin.schemas(Topic.parse(topic))
        schema = schemas[-1] if schemas else None
        to = f"{topic}-again"
        parsed = Topic.parse(to)
        # The generic reader shows JSON as it stands, and the corpus has times as numbers.
        settings.pulsar.json_times[parsed.local_name] = "numbers"
        clients.admin.create(parsed, 0)
        if schema is not None and schema.type not in ("NONE", "BYTES"):
            clients.admin.put_schema(parsed, schema)
        columns = written_columns(schema)
        rows = rows_of(settings, topic, columns, schema.version if schema else None)
        assert bool(len(rows)) is (kind.name not in WITHOUT_ROWS)
        write_rows(clients, to, as_written(rows, schema), batchingMaxMessages="5")
        admin.wait_recovered(to)
        again = rows_of(settings, to, columns, 0 if schema else None)
        wanted = pa.Table.from_batches(as_written(rows, schema), again.schema)
        return Copied(wanted, again, oracle.read(to, schema=kind.schema))

    names = {kind.name for kind in _WRITTEN}
    with Clients(settings) as clients:
        yield world.each([kind for kind in world.kinds if kind.name in names], copy)


@pytest.mark.parametrize("kind", _WRITTEN, ids=lambda kind: kind.name)
def test_every_kind_is_written_back(kind: Kind, world: World, copies: Outcomes) -> None:
    copied = copies[kind.name]
    if kind.name in UNWRITABLE:
        assert isinstance(copied, UnsupportedError)
        assert "PROTOBUF schema cannot be written" in str(copied)
        return
    if isinstance(copied, Exception):
        raise copied
    assert list(map(plain, copied.again.to_pylist())) == list(map(plain, copied.wanted.to_pylist()))
    first = world.published[kind.name].java.values()
    assert_java_reads_the_same(kind.name, first, copied)


def bare(value: Any) -> Any:
    """Without members of JSON that are null, which are left out where we write it."""
    if isinstance(value, dict):
        return {name: bare(one) for name, one in sorted(value.items()) if one is not None}
    return [bare(one) for one in value] if isinstance(value, list) else value


def assert_java_reads_the_same(name: str, original: Iterable[Json], copied: Copied) -> None:
    """Each message of the copy is one that the Java client reads of the topic, equally often."""
    forms = {repr(written): own for written, own in OTHER_FORMS.get(name, [])}

    def compared(row: Json) -> str:
        row = row | {"value": bare(row.get("value"))}
        row["value"] = forms.get(repr(row["value"]), row["value"])
        return repr({name: bare(row.get(name)) for name in _COMPARED})

    first = Counter(map(compared, original))
    found = Counter(map(compared, copied.java))
    assert sum(found.values()) == len(copied.wanted)
    strange = found - first
    assert not strange, (strange, first - found)
