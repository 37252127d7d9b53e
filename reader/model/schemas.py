"""Versions of a topic's schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SchemaInfo"]


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """One version of a topic's schema.

    ``type`` is Pulsar's name in capitals (AVRO, JSON, STRING, INT32, BYTES, KEY_VALUE, …);
    ``definition`` is the schema text ("" for primitives). ``json_bytes``: what JSON holds for
    bytes, "base64" or "text", or "" if the settings do not say it (``pulsar.json_bytes``).
    """

    version: int
    type: str
    definition: str
    properties: Mapping[str, str] = field(default_factory=dict)
    json_bytes: str = ""

    @property
    def encoding(self) -> str:
        """Of a KEY_VALUE schema, where the key is: INLINE or SEPARATED."""
        return self.properties.get("kv.encoding.type") or "INLINE"
