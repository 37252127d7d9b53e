"""Rows to entries as they are stored, and what the decoder gives of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from reader.encode import (
    BatchEncoder,
    EncodedEntry,
    Encryption,
    EntryFormat,
    MessageColumns,
    check_message_columns,
    message_columns,
)
from reader.kernels.byte_spans import ByteSpans
from reader.kernels.crc32c import crc32c
from reader.model.columns import TIMESTAMP
from reader.sink.sending import outgoing
from tests.unit.decode.entries import decode
from tests.unit.decode.test_decryption import RSA
from tests.unit.encode.messages.proto import Stored, stored_entry

NAME = "pulsar-lake-" + "n" * 200
"""The longest name that a producer of a write has."""
NOW = 1_700_000_000.123


@dataclass(frozen=True, slots=True)
class Row:
    """One message. ``key``: text, or bytes; ``base64``: that its text is base64. Times in ms."""

    value: bytes | None = b"value"
    key: str | bytes | None = None
    base64: bool | None = None
    order: bytes | None = None
    properties: Mapping[str, str] | None = field(default_factory=dict)
    event: int | None = None
    deliver: int | None = None

    @property
    def tombstone(self) -> bool:
        return self.value is None


def batch_of_rows(rows: Sequence[Row]) -> pa.RecordBatch:
    """Their metadata columns, as a slice of a longer batch."""
    binary = any(isinstance(one.key, bytes) for one in rows)
    some = [Row(properties={"x": "y"}, order=b"o"), *rows, Row(properties={"z": "z"}, order=b"p")]
    columns = {
        "__key": pa.array(
            [None] + [one.key for one in rows] + [None], pa.binary() if binary else pa.string()
        ),
        "__keyBase64": pa.array([one.base64 for one in some], pa.bool_()),
        "__orderingKey": pa.array([one.order for one in some], pa.binary()),
        "__messageProperties": pa.array(
            [None if one.properties is None else list(one.properties.items()) for one in some],
            pa.map_(pa.string(), pa.string()),
        ),
        "__eventTime": _times([one.event for one in some]),
        "__deliverAt": _times([one.deliver for one in some]),
        "__tombstone": pa.array([one.tombstone for one in some], pa.bool_()),
    }
    return pa.record_batch(columns).slice(1, len(rows))


def _times(millis: Sequence[int | None]) -> pa.Array:
    return pa.array([None if one is None else one * 1000 + 7 for one in millis], TIMESTAMP)


def columns_of(rows: Sequence[Row]) -> MessageColumns:
    batch = batch_of_rows(rows)
    check_message_columns(batch.schema)
    return message_columns(batch)


def encode(
    rows: Sequence[Row],
    form: EntryFormat | None = None,
    encryption: Encryption | None = None,
    *,
    calls: int = 1,
) -> list[EncodedEntry]:
    """The entries of all rows, added in so many ``calls``."""
    encoder = BatchEncoder(form or EntryFormat(), encryption)
    columns, values = columns_of(rows), values_of(rows)
    found: list[EncodedEntry] = []
    for some in np.array_split(np.arange(len(rows)), calls):
        found += encoder.add(some, values, columns)
    found += encoder.finish()
    assert encoder.waiting == 0
    assert sum(one.messages for one in found) == len(rows)
    return found


def chosen(rows: Sequence[Row], numbers: Sequence[int]) -> list[EncodedEntry]:
    """The entries of some of them, in this order."""
    encoder = BatchEncoder(EntryFormat())
    found = list(encoder.add(np.array(numbers, np.int64), values_of(rows), columns_of(rows)))
    return [*found, *encoder.finish()]


def in_turns(turns: Sequence[Sequence[Row]]) -> list[EncodedEntry]:
    """The entries of rows that come in several batches of columns."""
    encoder = BatchEncoder(EntryFormat())
    found: list[EncodedEntry] = []
    for rows in turns:
        found += encoder.add(np.arange(len(rows)), values_of(rows), columns_of(rows))
    return [*found, *encoder.finish()]


def values_of(rows: Sequence[Row]) -> ByteSpans:
    return ByteSpans.of(pa.array([one.value for one in rows], pa.large_binary()))


def stored(entries: Sequence[EncodedEntry], first: int = 0, name: str = NAME) -> list[bytes]:
    """The entries as they lie in a ledger once they were sent under this name."""
    found = []
    sequence = first
    for one in entries:
        made = outgoing(name, sequence, one, lambda: NOW)
        assert (made.sequence, made.highest) == (sequence, sequence + one.ids - 1)
        body = len(made.metadata).to_bytes(4, "big") + made.metadata + bytes(made.payload)
        found.append(b"\x0e\x01" + _checksum(body) + body)
        sequence += one.ids
    return found


def _checksum(data: bytes) -> bytes:
    return int(crc32c(np.frombuffer(data, np.uint8), 0, len(data))).to_bytes(4, "big")


def public_rsa() -> bytes:
    """The public key of ``test_decryption.RSA``."""
    return RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def independent(entries: Sequence[EncodedEntry], first: int = 0) -> list[Stored]:
    """The entries, by Google's library."""
    return [stored_entry(one) for one in stored(entries, first)]


def decoded(
    entries: Sequence[EncodedEntry], first: int = 0, **options: Any
) -> list[dict[str, Any]]:
    """The rows that our decoder gives of the entries; none is rescued."""
    rows = decode(stored(entries, first), **options)
    assert [one["rescued"] for one in rows] == [None] * len(rows)
    return rows


def expected(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What ``decoded`` gives of them, as far as rows say it."""
    found = []
    for one in rows:
        key, base64 = one.key, one.base64 or False
        if isinstance(key, bytes):
            key, base64 = _base64(key), True
        found.append(
            {
                "payload": one.value,
                "__key": key,
                "__keyBase64": None if key is None else base64,
                "__orderingKey": one.order,
                "__messageProperties": dict(one.properties or {}),
                "__eventTime": None if one.event is None else one.event * 1000,
                "__deliverAt": None if one.deliver is None else one.deliver * 1000,
            }
        )
    return found


def _base64(data: bytes) -> str:
    """RFC 4648, bit by bit."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    bits = "".join(f"{byte:08b}" for byte in data)
    bits += "0" * (-len(bits) % 6)
    text = "".join(letters[int(bits[at : at + 6], 2)] for at in range(0, len(bits), 6))
    return text + "=" * (-len(text) % 4)
