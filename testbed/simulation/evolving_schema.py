"""An Avro schema that evolves: version n has ``value`` and n more columns, each a copy of it.

A message that is decoded by another version than its own gives other rows, or none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["avro_chunks", "avro_message", "message_of", "schema_versions"]


def schema_versions(count: int) -> list[dict[str, Any]]:
    """The first ``count`` versions, as Pulsar's admin REST tells them."""
    return [
        {"version": one, "type": "AVRO", "timestamp": 0, "data": _definition(one), "properties": {}}
        for one in range(count)
    ]


def _definition(version: int) -> str:
    fields: list[dict[str, Any]] = [
        {"name": name, "type": ["null", "string"], "default": None} for name in _names(version)
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def _names(version: int) -> Sequence[str]:
    return ["value", *(f"copy{number}" for number in range(1, version + 1))]


def avro_message(text: bytes, version: int) -> bytes:
    """Avro's binary encoding: of each field the union's second branch, and a short string."""
    assert len(text) < 64
    return (b"\x02" + bytes([len(text) << 1]) + text) * len(_names(version))


def avro_chunks(texts: Sequence[bytes]) -> list[bytes]:
    """The parts of a message of version 0 whose text is all of ``texts``."""
    whole = b"".join(texts)
    begin = avro_message(whole, 0).removesuffix(whole)
    return [begin + texts[0], *texts[1:]]


def message_of(row: Mapping[str, str | None], version: int) -> bytes | None:
    """The message that a row of that version stands for; None: it can be none's."""
    there = {name: value for name, value in row.items() if value is not None}
    if set(there) != set(_names(version)) or len(set(there.values())) != 1:
        return None
    return avro_message(there["value"].encode(), version)
