"""What the Java client reads from a topic, as rows."""

import base64
import os
from collections.abc import Mapping
from typing import Any

from reader.model import Topic
from testbed.oracle import Json, Oracle
from tests.contract.rows import Key, Row


def java_rows(
    oracle: Oracle,
    topic: str,
    schema: Json | None = None,
    decryption: Mapping[str, str] | None = None,
) -> dict[Key, Json]:
    found: dict[Key, Json] = {}
    for row in oracle.read(topic, schema=schema, decryption=decryption):
        key = row["partition"], row["ledger"], row["entry"], row["batch"]
        assert key not in found, "the Java client gave a message twice"
        found[key] = row
    return found


def bytes_of(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def raw_value(java: Json) -> Row:
    return {"value": bytes_of(java["data"])}


def micros(milliseconds: int | None) -> int | None:
    return milliseconds * 1000 if milliseconds else None


def metadata_of(java: Json, topic: str) -> Row:
    """Return the metadata columns of a message."""
    return {
        "__topic": Topic.parse(topic).full_name,
        "__partition": java["partition"],
        "__ledgerId": java["ledger"],
        "__entryId": java["entry"],
        "__batchIndex": java["batch"],
        "__key": java["key"],
        "__keyBase64": java["key_base64"] if java["has_key"] else None,
        "__orderingKey": bytes_of(java["ordering_key"]),
        "__messageProperties": list(java["properties"].items()),
        "__publishTime": micros(java["publish_time"]),
        "__eventTime": micros(java["event_time"]),
        "__brokerPublishTime": micros(java["broker_publish_time"]),
        "__deliverAt": micros(java["deliver_at"]),
        "__index": java["index"],
        "__producerName": java["producer"],
        "__replicatedFrom": java["replicated_from"],
        "__sequenceId": java["sequence_id"],
        "__schemaVersion": java["schema_version"],
        "__tombstone": java["null"] or not java["data"],
        "__encryptionContext": None,
        "__otherMetadata": None,
        "__firstChunkLedgerId": java["first_chunk_ledger"],
        "__firstChunkEntryId": java["first_chunk_entry"],
        "__kind": "message",
        "__rescued": None,
        "__error": None,
    }


def context_of(message: Json) -> Row | None:
    """Return the column `__encryptionContext` of a message."""
    context = message["encryption"]
    if context is None:
        return None
    return {
        "keys": [
            {
                "name": key["name"],
                "value": bytes_of(key["value"]),
                "metadata": list(key["metadata"].items()),
            }
            for key in context["keys"]
        ],
        "param": bytes_of(context["param"]),
        "algorithm": context["algorithm"] or None,
        "compression": context["compression"],
        "uncompressedSize": context["uncompressed_size"] or None,
        "batchSize": context["batch_size"],
        "metadata": bytes_of(context["metadata"]),
    }


def without_order(value: Any) -> Any:
    """Return a plain value with members of structs and entries of maps sorted by their names."""
    if isinstance(value, dict):
        return {name: without_order(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        items = [without_order(item) for item in value]
        pairs = all(isinstance(item, list) and len(item) == 2 for item in items)
        if pairs and all(isinstance(item[0], str) for item in items):
            return sorted(items, key=lambda item: str(item[0]))
        return items
    return value


def body(size: int) -> bytes:
    """Return random bytes, of which half can be compressed."""
    return os.urandom(size // 2) + b"x" * (size - size // 2)
