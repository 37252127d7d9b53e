"""pulsar-client for Python: random `Record` classes, through `JsonSchema` and `AvroSchema`.

`JsonSchema` writes enums by value and bytes as their UTF-8 text, and NaN as a bare word;
`AvroSchema` writes symbols by name.
"""

import base64
import enum
import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulsar.schema as pulsar_schema

from testbed.clients.messages import ClientMessage, ClientTopic

_LETTERS = string.ascii_letters + string.digits + " _-\"\\/<>&'ä\0\x1f\n\t\u2028€😀"
_DOUBLES = (0.0, -0.0, 1.0, 0.1, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 2.0**53)
_WORDS = (float("nan"), float("inf"), float("-inf"))
_INTEGERS = (0, 1, -1, 127, 128, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63))


@dataclass(frozen=True, slots=True)
class _Kind:
    field: Callable[[bool], Any]
    """The field of a `Record`, required or not."""
    value: Callable[[], Any]
    show: Callable[[Any], Any]
    inner: Any = None
    """What stands in an `Array` or `Map` for this kind."""


def python_topics(seed: int, schemas: int, messages: int) -> list[ClientTopic]:
    """Return `schemas` random topics of `messages` messages each, JSON and AVRO in turn."""
    return [_topic(random.Random(f"{seed} {n}"), n % 2 == 1, messages) for n in range(schemas)]


def _topic(chance: random.Random, avro: bool, messages: int) -> ClientTopic:
    maker = _Maker(chance, avro)
    record, value, show = maker.record(3)
    schema = (pulsar_schema.AvroSchema if avro else pulsar_schema.JsonSchema)(record)
    made = []
    for _ in range(messages):
        # The value as it is given: the client does not read all of its own JSON (enums of text).
        record_value = value()
        made.append(ClientMessage(schema.encode(record_value), show(record_value)))
    return ClientTopic("AVRO" if avro else "JSON", schema.schema_info().schema(), made)


class _Maker:
    def __init__(self, chance: random.Random, avro: bool) -> None:
        self._chance = chance
        self._avro = avro
        self._names = 0

    def record(self, depth: int) -> tuple[Any, Callable[[], Any], Callable[[Any], Any]]:
        """Return a `Record` class, what makes its values, and what shows them."""
        chance = self._chance
        self._names += 1
        name_of_class = f"R{self._names}"
        kinds = {f"field{n}": self._kind(depth) for n in range(chance.randint(1, 6))}
        needed = {name: chance.random() < 0.5 for name in kinds}
        members = {name: kind.field(needed[name]) for name, kind in kinds.items()}
        made = type(pulsar_schema.Record)(name_of_class, (pulsar_schema.Record,), members)

        def value() -> Any:
            return made(
                **{
                    name: kind.value() if needed[name] or chance.random() < 0.7 else None
                    for name, kind in kinds.items()
                }
            )

        def show(record: Any) -> Any:
            values = {name: getattr(record, name) for name in kinds}
            return {
                name: None if values[name] is None else kind.show(values[name])
                for name, kind in kinds.items()
            }

        return made, value, show

    def _kind(self, depth: int, *, enums: bool = True) -> _Kind:
        choice = self._chance.randint(0, 9) if depth else 9
        if choice == 0:
            record, value, show = self.record(depth - 1)
            return _Kind(lambda needed: record(required=needed), value, show, record)
        if choice in (1, 2):
            # Not enums: their schema there is one that brokers refuse ("items": "enum").
            return self._collection(self._kind(depth - 1, enums=False), choice == 1)
        return self._simple(enums)

    def _collection(self, of: _Kind, is_list: bool) -> _Kind:
        chance = self._chance
        inner = of.inner() if isinstance(of.inner, type) else of.field(True)
        if is_list:
            return _Kind(
                lambda needed: pulsar_schema.Array(inner, required=needed),
                lambda: [of.value() for _ in range(chance.randint(0, 3))],
                lambda items: [of.show(item) for item in items],
            )
        return _Kind(
            lambda needed: pulsar_schema.Map(inner, required=needed),
            lambda: {self._text(): of.value() for _ in range(chance.randint(0, 3))},
            lambda items: {name: of.show(item) for name, item in items.items()},
        )

    def _simple(self, enums: bool) -> _Kind:
        chance = self._chance
        fields: list[tuple[Any, Callable[[], Any], Callable[[Any], Any]]] = [
            (pulsar_schema.Boolean, lambda: chance.random() < 0.5, bool),
            (pulsar_schema.Integer, lambda: self._integer(31), int),
            (pulsar_schema.Long, lambda: self._integer(63), int),
            (pulsar_schema.Double, self._double, repr),
            (pulsar_schema.Float, lambda: float(chance.randint(-1000, 1000)) / 8, repr),
            (pulsar_schema.String, self._text, str),
        ]
        if self._avro:
            fields.append((pulsar_schema.Bytes, lambda: chance.randbytes(5), _base64))
        elif enums and chance.random() < 0.2:
            return self._enumeration()
        field, value, show = chance.choice(fields)
        return _Kind(lambda needed: field(required=needed), value, show)

    def _enumeration(self) -> _Kind:
        """JSON has an enum's value, which is what the client reads: a number, or text."""
        chance = self._chance
        self._names += 1
        values = chance.choice([(1, 2, 3), ("r", "g", "b"), (0, 7, -1)])
        members = list(zip(("RED", "GREEN", "BLUE"), values, strict=True))
        made = enum.Enum(f"E{self._names}", members)  # type: ignore[misc]
        return _Kind(
            lambda needed: pulsar_schema.CustomEnum(made, required=needed),
            lambda: chance.choice(list(made)),
            lambda member: str(getattr(member, "value", member)),
        )

    def _text(self) -> str:
        return "".join(self._chance.choices(_LETTERS, k=self._chance.randint(0, 7)))

    def _integer(self, bits: int) -> int:
        edges = [edge for edge in _INTEGERS if -(1 << bits) <= edge < 1 << bits]
        if self._chance.random() < 0.5:
            return self._chance.choice(edges)
        return self._chance.randint(-(1 << bits), (1 << bits) - 1)

    def _double(self) -> Any:
        if self._chance.random() < 0.5:
            return self._chance.choice(_DOUBLES + _WORDS)
        return self._chance.gauss(0, 1) * 10.0 ** self._chance.randint(-20, 20)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
