"""Topics of every kind of schema for the Java client: what it writes, and what must come out.

    columns   the payload columns of a value that the Java client read, as docs/types.md maps them
    records   records in Avro and JSON
    clients   what clients write for types of their own, and fields that change their types
    keyvalue  KEY_VALUE, inline and separated
    protobuf  PROTOBUF and PROTOBUF_NATIVE
    several   topics whose messages are of several schema types
    primitives  values of primitive schemas, and their columns
    edges     payloads at the edge of what a schema holds, and beyond

Nothing here is computed by the product.
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.oracle import Json

__all__ = ["SOME", "Case", "Columns", "Row", "Write", "packed", "raw", "stated", "typed"]

Row = dict[str, Any]
Columns = Callable[[Json], Row]
"""Payload columns of a message of the Java client; `__rescued`, `__error`, `__kind` if set."""


class _Some:
    """Equal to every text: the reason of a rescued row is for people."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and bool(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "some text"


SOME = _Some()


@dataclass(frozen=True)
class Write:
    """What one producer sends: values, or messages with a `value`."""

    schema: Json
    values: Sequence[Any]
    options: Json = field(default_factory=dict)

    def messages(self) -> list[Json]:
        return [{"value": value, "key": f"k{n % 3}"} for n, value in enumerate(self.values)]


@dataclass(frozen=True)
class Case:
    """One topic, written by several producers in turn.

    `keyed`: whether the messages get keys (those of SEPARATED have their own).
    `schema`: to read by, where the client's AUTO_CONSUME cannot.
    `tiers`: those that can give it.
    """

    name: str
    writes: Sequence[Write]
    columns: Columns
    keyed: bool = True
    schema: Json | None = None
    tiers: Sequence[str] = ("bookkeeper", "query", "stream", "broker", "parquet")

    def messages(self, write: Write) -> list[Json]:
        if self.keyed:
            return write.messages()
        return [{"value": value} for value in write.values]


# One entry a message; batches of three, so that the last one is shorter; one compressed batch.
PACKINGS: tuple[Json, ...] = ({}, {"batch": 3}, {"batch": 100, "compression": "ZSTD"})


def packed(schema: Json, values: Sequence[Any]) -> list[Write]:
    return [Write(schema, values, options) for options in PACKINGS]


def typed(kind: str, definition: Any) -> Json:
    """AVRO or JSON by an Avro schema."""
    return {"type": kind, "definition": definition}


def raw(schema: Json) -> Json:
    """The client sends bytes as they are, as if they were of this schema."""
    return {**schema, "raw": True}


def stated(rows: Sequence[tuple[bytes, Row | None, bool]]) -> Columns:
    """For single payloads: (payload, its columns, whether it is rescued, too)."""
    known = {payload: (row, rescued) for payload, row, rescued in rows}

    def columns(java: Json) -> Row:
        data = base64.b64decode(java["data"])
        row, rescued = known[data]
        decoded = any(value is not None for value in (row or {}).values())
        kind = "message" if decoded else "undecodable"
        why = {"__rescued": data, "__error": SOME, "__kind": kind} if rescued else {}
        return {**(row or {}), **why}

    return columns
