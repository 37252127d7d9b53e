"""Versions of a topic's schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """One version of a topic's schema.

    ``type`` is Pulsar's name in capitals (AVRO, JSON, STRING, INT32, BYTES, KEY_VALUE, …);
    ``definition`` is the schema text ("" for primitives). ``json_bytes``: what JSON holds for
    bytes, "base64" or "text", or "" if the settings do not say it (``pulsar.json_bytes``).
    ``json_times``: what is written to JSON for times, "text" or "numbers" (``pulsar.json_times``),
    or "" for text.
    ``timestamp``: when it was registered, ms since the epoch by the broker's clock; 0: not known.
    ``life``: how often the registry had forgotten the topic's schema by then, as far as the table
    remembers.
    """

    version: int
    type: str
    definition: str
    properties: Mapping[str, str] = field(default_factory=dict)
    json_bytes: str = field(default="", compare=False)
    timestamp: int = 0
    life: int = 0
    json_times: str = field(default="", compare=False)

    def of_life(self, life: int) -> SchemaInfo:
        """Return the definition as one of another life of the registry."""
        return self if self.life == life else replace(self, life=life)

    def same_content(self, other: SchemaInfo) -> bool:
        """Return whether both definitions decode a message in the same way."""
        return (self.type, self.definition, dict(self.properties)) == (
            other.type,
            other.definition,
            dict(other.properties),
        )

    @property
    def encoding(self) -> str:
        """Of a KEY_VALUE schema, where the key is: INLINE or SEPARATED."""
        return self.properties.get("kv.encoding.type") or "INLINE"
