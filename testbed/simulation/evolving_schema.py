"""An Avro schema that evolves, is deleted and registered anew.

Version n has ``value`` and n more columns, each of them ``value`` and a number. In every second
life of the registry the fields are in the opposite order. So a message that is decoded by another
definition than its own gives other rows, or none.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class SchemaRegistry:
    """A topic's schema. ``times``: when each version was registered (ms), None: it is a deletion.

    ``life``: how often the schema was deleted by force; ``first``: the first listed version.
    ``registered``: when each version of each life was (ms), by life and version; ``shown``: those
    that were listed to anyone; ``seen``: those that a commit could know.
    """

    times: list[int | None] = field(default_factory=list)
    life: int = 0
    first: int = 0
    registered: dict[tuple[int, int], int] = field(default_factory=dict)
    shown: set[tuple[int, int]] = field(default_factory=set)
    seen: set[tuple[int, int]] = field(default_factory=set)

    @property
    def newest(self) -> int:
        """The newest version; -1: there is none."""
        return len(self.times) - 1

    def register(self, now_ms: int) -> None:
        """Add a version."""
        self.registered[self.life, len(self.times)] = now_ms
        self.times.append(now_ms)

    def delete(self) -> None:
        """Delete the schema without force: numbers go on, what is before is not listed."""
        self.times.append(None)
        self.first = len(self.times)

    def delete_by_force(self) -> None:
        """Forget all versions: numbers begin with 0 again."""
        self.times, self.life, self.first = [], self.life + 1, 0

    def listed(self) -> list[dict[str, Any]]:
        """Return the versions as Pulsar's admin REST lists them."""
        self.shown |= self._now()
        return [
            {
                "version": version,
                "type": "AVRO",
                "timestamp": time,
                "data": _definition(version, self.life),
                "properties": {},
            }
            for version, time in enumerate(self.times)
            if version >= self.first
        ]

    def note_commit(self) -> None:
        """A table remembers what is listed now and was shown before."""
        self.seen |= self._now() & self.shown

    def _now(self) -> set[tuple[int, int]]:
        return {(self.life, version) for version in range(self.first, len(self.times))}


def _definition(version: int, life: int) -> str:
    fields: list[dict[str, Any]] = [
        {"name": name, "type": ["null", "string"], "default": None}
        for name in _names(version, life)
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def _names(version: int, life: int) -> Sequence[str]:
    names = ["value", *(f"copy{number}" for number in range(1, version + 1))]
    return names if life % 2 == 0 else names[::-1]


def _text(name: str, text: bytes) -> bytes:
    return text if name == "value" else text + b"/" + name.removeprefix("copy").encode()


def avro_message(text: bytes, version: int, life: int = 0) -> bytes:
    """Avro's binary encoding: of each field the union's second branch, and a short string.

    ``text`` is the field ``value``. It begins with ``k<life>-`` in another life than the first.
    """
    texts = [_text(name, text) for name in _names(version, life)]
    assert all(len(one) < 64 for one in texts)
    return b"".join(b"\x02" + bytes([len(one) << 1]) + one for one in texts)


def life_of(message: bytes) -> int:
    """Return the life of the registry that a message was written in."""
    found = re.search(rb"k(\d+)-", message)
    return int(found[1]) if found else 0


def avro_chunks(texts: Sequence[bytes]) -> list[bytes]:
    """The parts of a message of version 0 whose text is all of ``texts``."""
    whole = b"".join(texts)
    begin = avro_message(whole, 0).removesuffix(whole)
    return [begin + texts[0], *texts[1:]]


def message_of(row: Mapping[str, str | None], version: int) -> bytes | None:
    """The message that a row of that version stands for; None: it can be none's."""
    there = {name: value.encode() for name, value in row.items() if value is not None}
    text = there.get("value", b"")
    if there != {name: _text(name, text) for name in _names(version, 0)}:
        return None
    return avro_message(text, version, life_of(text))


def mirrored(row: Mapping[str, str | None], version: int) -> dict[str, str | None]:
    """Return the row that the definition of a life with the opposite order gives.

    Values that the version has no field for stay where they are.
    """
    names = _names(version, 0)
    return {**row, **{name: row.get(other) for name, other in zip(names, names[::-1], strict=True)}}
