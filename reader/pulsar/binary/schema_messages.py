"""Schemas as brokers write them: ``Schema`` of PulsarApi.proto. No I/O."""

import json
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from reader.errors import CorruptError
from reader.model import SchemaInfo
from reader.wire.pulsar_pb2 import CommandGetSchemaResponse, Schema

_TYPES = (
    "BYTES", "STRING", "JSON", "PROTOBUF", "AVRO", "BOOLEAN", "INT8", "INT16", "INT32", "INT64",
    "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "KEY_VALUE", "INSTANT", "LOCAL_DATE",
    "LOCAL_TIME", "LOCAL_DATE_TIME", "PROTOBUF_NATIVE", "AUTO_CONSUME", "EXTERNAL",
)  # fmt: skip
"""The REST API's names of Schema.Type, by its numbers."""


@dataclass(frozen=True, slots=True)
class SchemaFound:
    """A version of a topic's schema.

    ``message``: the schema as the broker writes it, to be given to it again. ``version``: as
    messages name it.
    """

    schema: SchemaInfo
    message: bytes
    version: bytes


def schema_found(response: CommandGetSchemaResponse) -> SchemaFound:
    """Return the schema of an answer that is no error. Raises CorruptError if it is malformed."""
    try:
        message = Schema.FromString(response.schema)
    except DecodeError:
        raise CorruptError("a broker's command is not protobuf, or ends too early") from None
    number, data = message.type, message.schema_data
    kind = _TYPES[number] if 0 <= number < len(_TYPES) else f"TYPE_{number}"
    definition = _split(data) if kind == "KEY_VALUE" else _text(data)
    properties = {_text(pair.key): _text(pair.value) for pair in message.properties}
    version = int.from_bytes(response.schema_version, "big", signed=True)
    return SchemaFound(
        SchemaInfo(version, kind, definition, properties), response.schema, response.schema_version
    )


def _split(data: bytes) -> str:
    """Return two schemas, each after its size, as the JSON of the REST API."""
    halves: list[object] = []
    at = 0
    for _ in range(2):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if size > len(data) - at or len(data) < at:
            raise CorruptError("a broker's key-value schema ends too early")
        halves.append(_half(data[at : at + max(size, 0)]))
        at += max(size, 0)
    return json.dumps(dict(zip(("key", "value"), halves, strict=True)), ensure_ascii=False)


def _half(data: bytes) -> object:
    text = _text(data)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
