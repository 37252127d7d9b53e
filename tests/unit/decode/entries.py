"""Builds raw entries byte by byte, right and wrong ones."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from reader.decode import EntryDecoder, Messages
from reader.model import EntryBlock, Partition, Topic

PARTITION = Partition(Topic("public", "default", "orders"), 3)

# Numbers of PulsarApi.proto (MessageMetadata, SingleMessageMetadata).
METADATA_FIELDS = {
    "producer_name": 1,
    "sequence_id": 2,
    "publish_time": 3,
    "properties": 4,
    "replicated_from": 5,
    "partition_key": 6,
    "replicate_to": 7,
    "compression": 8,
    "uncompressed_size": 9,
    "num_messages_in_batch": 11,
    "event_time": 12,
    "encryption_keys": 13,
    "encryption_algo": 14,
    "encryption_param": 15,
    "schema_version": 16,
    "partition_key_b64_encoded": 17,
    "ordering_key": 18,
    "deliver_at_time": 19,
    "marker_type": 20,
    "txnid_least_bits": 22,
    "txnid_most_bits": 23,
    "highest_sequence_id": 24,
    "null_value": 25,
    "uuid": 26,
    "num_chunks_from_msg": 27,
    "total_chunk_msg_size": 28,
    "chunk_id": 29,
    "null_partition_key": 30,
    "schema_id": 32,
    "entry_hash_min": 33,
    "entry_hash_max": 34,
    "unknown": 4711,
}
SINGLE_FIELDS = {
    "properties": 1,
    "partition_key": 2,
    "payload_size": 3,
    "compacted_out": 4,
    "event_time": 5,
    "partition_key_b64_encoded": 6,
    "ordering_key": 7,
    "sequence_id": 8,
    "null_value": 9,
    "null_partition_key": 10,
    "unknown": 11,
}


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def proto(fields: Iterable[tuple[int, Any]]) -> bytes:
    """(number, int | bool | str | bytes) each; a list of pairs is repeated KeyValue."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(int(value))
        elif isinstance(value, list):
            for key, text in value:
                out += proto([(number, proto([(1, key), (2, text)]))])
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def _named(numbers: Mapping[str, int], values: Mapping[str, Any]) -> bytes:
    return proto((numbers[name], value) for name, value in values.items())


def metadata(**values: Any) -> bytes:
    """MessageMetadata; a required field that is not given has a default, None leaves it out."""
    full = {"producer_name": "p-1", "sequence_id": 7, "publish_time": 1_700_000_000_123} | values
    return _named(METADATA_FIELDS, {k: v for k, v in full.items() if v is not None})


def single(payload: bytes, again: Mapping[str, Any] | None = None, **values: Any) -> bytes:
    """A message as a batch holds it: size, SingleMessageMetadata, payload.

    ``again``: fields that are written once more, and so count instead of the first.
    """
    data = _named(SINGLE_FIELDS, {**values, "payload_size": len(payload)})
    data += _named(SINGLE_FIELDS, again or {})
    return len(data).to_bytes(4, "big") + data + payload


def compress(kind: int, data: bytes) -> bytes:
    """As CompressionType ``kind``; unchanged for 0 and for those that do not exist."""
    if kind == 2:
        return zlib.compress(data)
    codecs = {1: "lz4_raw", 3: "zstd", 4: "snappy"}
    return bytes(pa.Codec(codecs[kind]).compress(data)) if kind in codecs else data


def broker(timestamp: int | None = None, index: int | None = None) -> bytes:
    data = proto((n, v) for n, v in ((1, timestamp), (2, index)) if v is not None)
    return b"\x0e\x02" + len(data).to_bytes(4, "big") + data


def _crc32c_step(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


_CRC32C_STEPS = [_crc32c_step(byte) for byte in range(256)]


def crc32c_slow(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC32C_STEPS[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def entry(
    payload: bytes = b"",
    *,
    head: bytes = b"",
    checksum: bool = True,
    compression: int = 0,
    raw_metadata: bytes | None = None,
    again: Mapping[str, Any] | None = None,
    **values: Any,
) -> bytes:
    """A whole entry; ``head`` is what the broker puts before it, ``again`` as for ``single``."""
    if compression:
        values = {"compression": compression, "uncompressed_size": len(payload)} | values
    data = metadata(**values) if raw_metadata is None else raw_metadata
    data += _named(METADATA_FIELDS, again or {})
    body = len(data).to_bytes(4, "big") + data + compress(compression, payload)
    if checksum:
        body = b"\x0e\x01" + crc32c_slow(body).to_bytes(4, "big") + body
    return head + body


def block_of(
    entries: Sequence[bytes], damaged: Mapping[int, str] | None = None, gap: int = 3
) -> EntryBlock:
    """A block with ``gap`` foreign bytes around each entry; ids from 10 up."""
    arena = bytearray(b"\xaa" * gap)
    offsets = []
    for raw in entries:
        offsets.append(len(arena))
        arena += raw + b"\xaa" * gap
    return EntryBlock(
        ledger_id=42,
        entry_ids=np.arange(10, 10 + len(entries), dtype=np.int64),
        offsets=np.array(offsets, np.int64),
        lengths=np.array([len(raw) for raw in entries], np.int64),
        arena=np.frombuffer(bytes(arena), np.uint8),
        damaged=damaged or {},
    )


def rows_of(messages: Messages) -> list[dict[str, Any]]:
    """The rows of one Messages as dicts: times in µs, properties as dict, ``rescued``, ``kind``."""
    table: dict[str, list[Any]] = {}
    for name, array in messages.columns.items():
        array.validate(full=True)
        assert len(array) == len(messages)
        if pa.types.is_timestamp(array.type):
            array = array.cast(pa.int64())
        table[name] = array.to_pylist()
        if pa.types.is_map(array.type):
            for pairs in table[name]:
                assert pairs is None or len(dict(pairs)) == len(pairs)
            table[name] = [None if pairs is None else dict(pairs) for pairs in table[name]]
    if messages.payload is not None:
        table["payload"] = [messages.payload[row] for row in range(len(messages))]
    table["schema"] = messages.schema_versions.tolist()
    rescued = [messages.rescued.get(row) for row in range(len(messages))]
    table["rescued"] = [row and (row.raw, row.reason) for row in rescued]
    table["kind"] = [row.kind.value if row else "message" for row in rescued]
    assert set(messages.rescued) <= set(range(len(messages)))
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def decode(
    entries: Sequence[bytes], *, damaged: Mapping[int, str] | None = None, **options: Any
) -> list[dict[str, Any]]:
    """All rows of the entries, through EntryDecoder."""
    decoder = EntryDecoder(PARTITION, **options)
    found = []
    for messages in decoder.decode(block_of(entries, damaged)):
        assert len(messages) > 0
        found += rows_of(messages)
    return found
