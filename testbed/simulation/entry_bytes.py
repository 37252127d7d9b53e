"""Entries as a broker stores them, written by hand: MessageMetadata of PulsarApi.proto."""

import zlib
from collections.abc import Callable, Sequence
from typing import Any

_FIELDS = {
    "producer_name": 1,
    "sequence_id": 2,
    "publish_time": 3,
    "partition_key": 6,
    "compression": 8,
    "uncompressed_size": 9,
    "num_messages_in_batch": 11,
    "schema_version": 16,
    "marker_type": 20,
    "txnid_least_bits": 22,
    "txnid_most_bits": 23,
    "null_value": 25,
    "uuid": 26,
    "num_chunks_from_msg": 27,
    "total_chunk_msg_size": 28,
    "chunk_id": 29,
}


_ZLIB = 2


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _proto(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _single(value: bytes | None) -> bytes:
    """A message of a batch: its size, SingleMessageMetadata, payload."""
    payload = value or b""
    data = _proto(3, len(payload)) + (_proto(9, 1) if value is None else b"")
    return len(data).to_bytes(4, "big") + data + payload


def message_entry(
    values: Sequence[bytes | None],
    *,
    publish_ms: int,
    broker_ms: int | None = None,
    batch: bool = False,
    compressed: bool = False,
    codec: int = _ZLIB,
    compress: Callable[[bytes], bytes] = zlib.compress,
    **more: Any,
) -> bytes:
    """An entry of these messages (None: a null value); ``broker_ms``: its broker entry metadata.

    ``compressed``: by ``compress``, which is of ``codec``. ``more``: other fields of its
    metadata, which may be wrong.
    """
    fields: dict[str, Any] = {"producer_name": b"p", "sequence_id": 7, "publish_time": publish_ms}
    if batch:
        fields["num_messages_in_batch"] = len(values)
        payload = b"".join(map(_single, values))
    else:
        (value,) = values
        payload = value or b""
        if value is None:
            fields["null_value"] = 1
    if compressed:
        fields |= {"compression": codec, "uncompressed_size": len(payload)}
        payload = compress(payload)
    fields |= more
    return _entry(fields, payload, broker_ms)


def raw_message(position: tuple[int, int], entry: bytes) -> bytes:
    """An entry of a compacted ledger: ``entry`` behind its position, each with its size."""
    place = _proto(1, position[0]) + _proto(2, position[1])
    return len(place).to_bytes(4, "big") + place + len(entry).to_bytes(4, "big") + entry


def marker_entry(kind: int, most: int, least: int, publish_ms: int) -> bytes:
    """21: committed, 22: aborted."""
    fields = {
        "producer_name": b"m",
        "sequence_id": 1,
        "publish_time": publish_ms,
        "marker_type": kind,
        "txnid_least_bits": least,
        "txnid_most_bits": most,
    }
    return _entry(fields, b"", None)


def stamped(entry: bytes, broker_ms: int) -> bytes:
    """An entry behind its broker entry metadata."""
    times = _proto(1, broker_ms)
    return b"\x0e\x02" + len(times).to_bytes(4, "big") + times + entry


def stored_values(entry: bytes) -> list[bytes | None]:
    """The messages of an entry as a producer sends it: with a checksum, plain or by zlib."""
    assert entry[:2] == b"\x0e\x01"
    size = int.from_bytes(entry[6:10], "big")
    fields, payload = _fields(entry[10 : 10 + size]), entry[10 + size :]
    if fields.get(_FIELDS["compression"]):
        assert fields[_FIELDS["compression"]] == _ZLIB
        payload = zlib.decompress(payload)
    count = fields.get(_FIELDS["num_messages_in_batch"])
    if count is None:
        return [None if fields.get(_FIELDS["null_value"]) else payload]
    assert isinstance(count, int)
    found: list[bytes | None] = []
    for _ in range(count):
        behind = 4 + int.from_bytes(payload[:4], "big")
        single = _fields(payload[4:behind])
        length = single[3]
        assert isinstance(length, int)
        found.append(None if single.get(9) else payload[behind : behind + length])
        payload = payload[behind + length :]
    assert not payload
    return found


def _fields(data: bytes) -> dict[int, int | bytes]:
    """The fields of a protobuf message, by number; of those that are repeated the last one."""
    found: dict[int, int | bytes] = {}
    while data:
        tag, data = _taken(data)
        value, data = _taken(data)
        if tag & 7 == 2:
            found[tag >> 3], data = data[:value], data[value:]
        else:
            found[tag >> 3] = value
    return found


def _taken(data: bytes) -> tuple[int, bytes]:
    value = 0
    for at, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return value, data[at + 1 :]
    raise ValueError("a varint is cut off")


def _entry(fields: dict[str, Any], payload: bytes, broker_ms: int | None) -> bytes:
    data = b"".join(_proto(_FIELDS[name], value) for name, value in fields.items())
    plain = len(data).to_bytes(4, "big") + data + payload
    return plain if broker_ms is None else stamped(plain, broker_ms)
