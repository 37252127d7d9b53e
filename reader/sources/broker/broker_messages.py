"""Messages of ``pulsar-client`` as columns: the same values and reasons as the entry decoder's.

Except what the client does not give (``reader.model.columns.BROKER_NULLS``). The raw bytes of a
rescued row are its payload: the client has no entry.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from reader.decode import MAX_PROPERTIES, Messages
from reader.kernels.byte_spans import ByteSpans
from reader.model import Partition
from reader.model.columns import METADATA

__all__ = ["Found", "messages_of", "publish_time"]

Found = tuple[Any, tuple[int, int, int]]
"""A message and its ledger, entry and batch index."""

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
    found = [message for message, _ in batch]
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

    def texts(name: str, problem: int) -> list[Any]:
        """The client fails on text that is not UTF-8: the message says so, and stays."""
        values = []
        for row, message in enumerate(found):
            try:
                values.append(getattr(message, name)() or None)
            except UnicodeDecodeError:
                values.append(None)
                problems.setdefault(row, set()).add(problem)
        return values

    def properties() -> list[Any]:
        values: list[Any] = []
        for row, pairs in enumerate(texts("properties", _PROPERTY)):
            if pairs is not None and len(pairs) > MAX_PROPERTIES:
                values.append(None)
                problems.setdefault(row, set()).add(_PROPERTIES)
            else:
                values.append(list((pairs or {}).items()))
        return values

    versions = np.array([_version(m.schema_version() or "") for m in found], dtype=np.int64)
    checked: dict[str, Callable[[], list[Any]]] = {
        "__key": lambda: texts("partition_key", _KEY),
        "__orderingKey": lambda: [
            None if key is None else key.encode() for key in texts("ordering_key", _ORDERING)
        ],
        "__messageProperties": properties,
        "__publishTime": lambda: times("publish_timestamp", _PUBLISH, None),
        "__eventTime": lambda: times("event_timestamp", _EVENT, 0),
        "__producerName": lambda: texts("producer_name", _PRODUCER),
    }
    make: dict[str, Callable[[], list[Any]]] = {
        "__partition": lambda: [partition.index] * len(found),
        "__ledgerId": lambda: [at[0] for _, at in batch],
        "__entryId": lambda: [at[1] for _, at in batch],
        "__batchIndex": lambda: [at[2] for _, at in batch],
        "__tombstone": lambda: [m.has_null_value() or not m.data() for m in found],
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
    key_texts = texts("partition_key", _KEY) if keys else []
    payload = pa.array([None if m.has_null_value() else m.data() for m in found], pa.large_binary())
    return Messages(
        columns=columns,
        payload=ByteSpans.of(payload),
        schema_versions=versions,
        rescued={row: (found[row].data(), _reason(one)) for row, one in problems.items()},
        keys=pa.array(map(_key, key_texts), pa.large_binary()) if keys else None,
    )


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
