"""Messages of ``pulsar-client`` as columns: the same values and reasons as the entry decoder's.

Except what the client does not give (``reader.model.columns.BROKER_NULLS``). The raw bytes of a
rescued row are its payload: the client has no entry.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from reader.decode import MAX_PROPERTIES, Messages
from reader.kernels.byte_spans import ByteSpans
from reader.model import Partition
from reader.model.columns import METADATA

__all__ = ["Found", "messages_of", "publish_time"]

_PROPERTY_BYTES = 150
"""What Python takes for a pair in a dict, besides its text."""
_CLIENTS_OWN = "__orderingKey"
"""Any bytes are good in it, and only the client fails on some: asked for only where it is wanted,
which no plan leaves to the broker unless it is told to."""
_MAX_MILLIS = ((1 << 63) - 1) // 1000
# In the decoder's order and words.
_PROBLEMS = (
    "publish time out of range",
    "event time out of range",
    "producer name is not UTF-8",
    "key is not UTF-8",
    "a property is not UTF-8",
    f"more than {MAX_PROPERTIES} properties",
    "ordering key is not UTF-8",
)
_PUBLISH, _EVENT, _PRODUCER, _KEY, _PROPERTY, _PROPERTIES, _ORDERING = range(len(_PROBLEMS))


class Found(NamedTuple):
    """A message, its ledger, entry and batch index, and what of it takes memory, asked for once.

    None where a text is not UTF-8: the client fails on it. ``size``: bytes.
    """

    message: Any
    at: tuple[int, int, int]
    data: bytes
    key: str | None
    ordering_key: str | None
    properties: dict[str, str] | None
    size: int

    @classmethod
    def of(cls, message: Any, at: tuple[int, int, int]) -> Found:
        """Of a message of the client."""
        data = message.data()
        key, ordering_key = _text(message.partition_key), _text(message.ordering_key)
        properties = _text(message.properties)
        size = len(data) + len(key or "") + len(ordering_key or "")
        if properties:
            size += len(properties) * _PROPERTY_BYTES
            size += sum(map(len, properties)) + sum(map(len, properties.values()))
        return cls(message, at, data, key, ordering_key, properties, size)


def publish_time(message: Any) -> int | None:
    """µs since the epoch; None where it is out of range."""
    return _micros(message.publish_timestamp())


def messages_of(
    batch: Sequence[Found],
    *,
    partition: Partition,
    wanted: Collection[str],
    keys: bool = False,
    rescue: bool = True,
) -> Messages:
    """The columns ``wanted``, and ``keys``. ``rescue``: look for all that has to be rescued.

    What the entry decoder would not rescue is looked for in columns that are wanted alone.
    """
    found = [one.message for one in batch]
    problems: dict[int, set[int]] = {}

    def times(name: str, problem: int, none: int | None) -> list[int | None]:
        values = []
        for row, message in enumerate(found):
            millis = getattr(message, name)()
            value = None if millis == none else _micros(millis)
            if value is None and millis != none:
                problems.setdefault(row, set()).add(problem)
            values.append(value)
        return values

    def texts(given: Iterable[str | None], problem: int) -> list[str | None]:
        values = []
        for row, text in enumerate(given):
            if text is None:
                problems.setdefault(row, set()).add(problem)
            values.append(text or None)
        return values

    def properties() -> list[Any]:
        values: list[Any] = []
        for row, one in enumerate(batch):
            pairs = one.properties
            if pairs is None:
                problems.setdefault(row, set()).add(_PROPERTY)
            elif len(pairs) > MAX_PROPERTIES:
                problems.setdefault(row, set()).add(_PROPERTIES)
                values.append(None)
                continue
            values.append(list(pairs.items()) if pairs else [])
        return values

    versions = np.array([_version(m.schema_version() or "") for m in found], dtype=np.int64)
    checked: dict[str, Callable[[], list[Any]]] = {
        "__key": lambda: texts((one.key for one in batch), _KEY),
        "__orderingKey": lambda: [
            None if key is None else key.encode()
            for key in texts((one.ordering_key for one in batch), _ORDERING)
        ],
        "__messageProperties": properties,
        "__publishTime": lambda: times("publish_timestamp", _PUBLISH, None),
        "__eventTime": lambda: times("event_timestamp", _EVENT, 0),
        "__producerName": lambda: texts((_text(m.producer_name) for m in found), _PRODUCER),
    }
    make: dict[str, Callable[[], list[Any]]] = {
        "__partition": lambda: [partition.index] * len(found),
        "__ledgerId": lambda: [one.at[0] for one in batch],
        "__entryId": lambda: [one.at[1] for one in batch],
        "__batchIndex": lambda: [one.at[2] for one in batch],
        "__tombstone": lambda: [not one.data or one.message.has_null_value() for one in batch],
        "__schemaVersion": lambda: [None if v < 0 else v for v in versions.tolist()],
    }
    values = {
        name: get()
        for name, get in checked.items()
        if name in wanted or (rescue and name != _CLIENTS_OWN)
    }
    values |= {name: get() for name, get in make.items() if name in wanted}
    columns = {
        name: pa.array(values[name], METADATA.field(name).type)
        if name in values
        else pa.nulls(len(found), METADATA.field(name).type)
        for name in wanted
    }
    key_texts = texts((one.key for one in batch), _KEY) if keys else []
    payload = pa.array(
        [None if one.message.has_null_value() else one.data for one in batch], pa.large_binary()
    )
    return Messages(
        columns=columns,
        payload=ByteSpans.of(payload),
        schema_versions=versions,
        rescued={row: (batch[row].data, _reason(one)) for row, one in problems.items()},
        keys=pa.array(map(_key, key_texts), pa.large_binary()) if keys else None,
    )


def _text(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except UnicodeDecodeError:
        return None


def _micros(millis: int) -> int | None:
    """A time of the protocol, 64 bits that the client takes for unsigned and others for signed."""
    signed = (millis + (1 << 63)) % (1 << 64) - (1 << 63)
    return signed * 1000 if -_MAX_MILLIS <= signed <= _MAX_MILLIS else None


def _reason(problems: set[int]) -> str:
    return "; ".join(_PROBLEMS[problem] for problem in sorted(problems))


def _key(text: str | None) -> bytes | None:
    """The key's bytes. Whether its text is base64 the client does not say: what can be, is."""
    try:
        return base64.b64decode(text, validate=True) if text else None
    except ValueError:
        return str(text).encode()


def _version(value: str | bytes) -> int:
    raw = value if isinstance(value, bytes) else value.encode("latin-1")
    return int.from_bytes(raw, "big", signed=True) if raw else -1
