"""Kinds of schemas by the Java client: primitive ones, versions, and all cases of `kinds`."""

import base64
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from testbed.oracle import Json
from tests.contract.corpus import Kind, Payload, Place
from tests.contract.kinds import Case, clients, edges, keyvalue, protobuf, records, several
from tests.contract.kinds.columns import key_value_columns
from tests.contract.kinds.primitives import PRIMITIVES
from tests.contract.rows import Row
from tests.support.schemas import avro_record


def _of_case(case: Case) -> Kind:
    def publish(to: Place) -> Iterator[None]:
        for write in case.writes:
            to.write(case.messages(write), write.schema, **write.options)
        yield from ()

    count = sum(len(write.values) for write in case.writes)
    return Kind(case.name, count, publish, case.columns, schema=case.schema)


# --- primitive schemas ---


def _primitive(kind: str, values: list[Any], ours: Callable[[Any], Any]) -> Kind:
    def publish(to: Place) -> Iterator[None]:
        messages: list[Json] = [{"value": value} for value in [*values, None]]
        to.write(messages, {"type": kind}, batch=100)
        yield from ()

    def payload(java: Json) -> Row:
        assert "value_error" not in java
        return {"value": None if java["null"] else ours(java["value"])}

    return Kind(f"primitive-{kind.lower()}", len(values) + 1, publish, payload)


# --- records ---


def record(*fields: Json) -> Json:
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": list(fields)}


def optional(name: str, kind: Any) -> Json:
    return {"name": name, "type": ["null", kind], "default": None}


FIRST = record({"name": "id", "type": "long"}, optional("name", "string"))
SECOND = record(*FIRST["fields"], optional("price", "double"))
THIRD = record(
    {"name": "id", "type": "long"},
    optional("price", "double"),
    {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    optional(
        "address",
        {"type": "record", "name": "Address", "fields": [{"name": "street", "type": "string"}]},
    ),
)


def _tagged(kind: str, name: str, value: Any) -> Any:
    """Return Avro's JSON encoding of a union's member."""
    return {name: value} if kind == "AVRO" and value is not None else value


def _fields(*names: str) -> Payload:
    """Return the columns of a record; a field that the writer's schema does not have is NULL."""

    def payload(java: Json) -> Row:
        assert "value_error" not in java
        value: Row = java["value"] or {}
        assert value.keys() <= set(names)
        return {name: value.get(name) for name in names}

    return payload


def _versions(kind: str) -> Kind:
    schemas = [{"type": kind, "definition": definition} for definition in (FIRST, SECOND, THIRD)]

    def values(version: int, numbers: Iterable[int]) -> list[Json]:
        found = []
        for n in numbers:
            value: Json = {"id": n}
            if version < 3:
                value["name"] = _tagged(kind, "string", [None, "", f"n{n} ü"][n % 3])
            if version > 1:
                value["price"] = _tagged(kind, "double", [None, 0.5, -1e300][n % 3])
            if version > 2:
                value["tags"] = ["a"] * (n % 3)
                value["address"] = _tagged(kind, "shop.Address", [None, {"street": "x"}][n % 2])
            found.append({"value": value, "key": f"k{n}"})
        return [*found, {"value": None, "key": "k"}]

    def publish(to: Place) -> Iterator[None]:
        for version, schema in enumerate(schemas, 1):
            for batch in (0, 3):
                keys = to.write(values(version, range(7)), schema, batch=batch)
                to.known |= {key: {"__schemaVersion": version - 1} for key in keys}
            if version == 2:
                yield
        # Old writers are still there, and one producer writes all versions.
        mixed = [
            {**values(n % 3 + 1, [n])[0], "schema": schemas[n % 3]}
            for n in (0, 1, 2, 3, 3, 4, 5, 5)
        ]
        for batch in (0, 3):
            to.write(values(1, range(7, 9)), schemas[0], batch=batch)
            to.write(mixed, schemas[2], batch=batch)

    rows = 2 * (3 * 8 + 3 + 8)
    payload = _fields("id", "name", "price", "tags", "address")
    return Kind(f"{kind.lower()}-three-versions", rows, publish, payload, halves=True, twice=True)


def _auto_produce(kind: str) -> Kind:
    """Bytes that were encoded before, beside a producer with the schema."""

    def publish(to: Place) -> Iterator[None]:
        schema = {"type": kind, "definition": FIRST}
        values = [{"id": n, "name": _tagged(kind, "string", f"n{n}")} for n in range(4)]
        to.write([{"value": value} for value in values], schema)
        encoded = [base64.b64decode(row["data"]) for row in to.oracle.read(to.topic)]
        for batch in (0, 3):
            automatic: list[Json] = [{"value": data} for data in encoded]
            keys = to.write(automatic, {"type": "AUTO_PRODUCE"}, batch=batch)
            to.known |= {key: {"id": n} for n, key in enumerate(keys)}
        yield from ()

    payload = _fields("id", "name")
    return Kind(f"{kind.lower()}-auto-produce", 12, publish, payload, twice=True)


# --- large pairs ---


def _large_pairs(encoding: str) -> Kind:
    """Chunks, keys, schemas and transactions at once."""
    definition: Json = avro_record("Document", {"id": "long", "text": "string"})
    document = {"type": "AVRO", "definition": definition}
    schema = {"type": "KEY_VALUE", "key": document, "value": document, "encoding": encoding}

    def pair(n: int) -> Json:
        text = "".join(chr(33 + n * k % 91) for k in range(4_000))
        return {"key": {"id": n, "text": text[:1500]}, "value": {"id": n, "text": text}}

    messages: list[Json] = [{"value": pair(n), "event_time": n + 1} for n in range(3)]
    packings: list[Json] = [
        {"chunk_size": 3_000},
        {"chunk_size": 5_000, "compression": "ZLIB"},
        {"batch": 2},
    ]

    def publish(to: Place) -> Iterator[None]:
        kept, dropped = to.oracle.begin(), to.oracle.begin()
        for options in packings:
            # A producer each: what is in a transaction may overtake what is not.
            for transaction in (None, kept, dropped):
                to.write(messages, schema, transaction=transaction, **options)
            yield
        to.oracle.commit(kept)
        to.oracle.abort(dropped)
        to.write([{"value": {"key": None, "value": None}}], schema)

    rows = 3 * 2 * len(messages) + 1
    payload = key_value_columns(document, document)
    return Kind(f"large-pairs-{encoding.lower()}", rows, publish, payload, halves=True, twice=True)


CASE_KINDS = [
    _of_case(case)
    for module in (records, clients, keyvalue, protobuf, several, edges)
    for case in module.CASES
]

KINDS = [
    *CASE_KINDS,
    *(_primitive(*primitive) for primitive in PRIMITIVES),
    *(_versions(kind) for kind in ("AVRO", "JSON")),
    *(_auto_produce(kind) for kind in ("AVRO", "JSON")),
    *(_large_pairs(encoding) for encoding in ("INLINE", "SEPARATED")),
]
