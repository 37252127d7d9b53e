"""MessageMetadata and SingleMessageMetadata of PulsarApi.proto, by Google's own library.

Written down from Pulsar's definition, and not from ours: nothing here knows the product.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_STRING, _BYTES, _U64, _I64, _I32, _BOOL, _MESSAGE = 9, 12, 4, 3, 5, 8, 11
_OPTIONAL, _REQUIRED, _REPEATED = 1, 2, 3

_DEFINITIONS: dict[str, Sequence[tuple[str, int, int, int, str]]] = {
    "KeyValue": [("key", 1, _STRING, _REQUIRED, ""), ("value", 2, _STRING, _REQUIRED, "")],
    "EncryptionKeys": [
        ("key", 1, _STRING, _REQUIRED, ""),
        ("value", 2, _BYTES, _REQUIRED, ""),
        ("metadata", 3, _MESSAGE, _REPEATED, "KeyValue"),
    ],
    "MessageMetadata": [
        ("producer_name", 1, _STRING, _REQUIRED, ""),
        ("sequence_id", 2, _U64, _REQUIRED, ""),
        ("publish_time", 3, _U64, _REQUIRED, ""),
        ("properties", 4, _MESSAGE, _REPEATED, "KeyValue"),
        ("replicated_from", 5, _STRING, _OPTIONAL, ""),
        ("partition_key", 6, _STRING, _OPTIONAL, ""),
        ("replicate_to", 7, _STRING, _REPEATED, ""),
        ("compression", 8, _I32, _OPTIONAL, ""),
        ("uncompressed_size", 9, 13, _OPTIONAL, ""),
        ("num_messages_in_batch", 11, _I32, _OPTIONAL, ""),
        ("event_time", 12, _U64, _OPTIONAL, ""),
        ("encryption_keys", 13, _MESSAGE, _REPEATED, "EncryptionKeys"),
        ("encryption_algo", 14, _STRING, _OPTIONAL, ""),
        ("encryption_param", 15, _BYTES, _OPTIONAL, ""),
        ("schema_version", 16, _BYTES, _OPTIONAL, ""),
        ("partition_key_b64_encoded", 17, _BOOL, _OPTIONAL, ""),
        ("ordering_key", 18, _BYTES, _OPTIONAL, ""),
        ("deliver_at_time", 19, _I64, _OPTIONAL, ""),
        ("marker_type", 20, _I32, _OPTIONAL, ""),
        ("txnid_least_bits", 22, _U64, _OPTIONAL, ""),
        ("txnid_most_bits", 23, _U64, _OPTIONAL, ""),
        ("highest_sequence_id", 24, _U64, _OPTIONAL, ""),
        ("null_value", 25, _BOOL, _OPTIONAL, ""),
        ("uuid", 26, _STRING, _OPTIONAL, ""),
        ("num_chunks_from_msg", 27, _I32, _OPTIONAL, ""),
        ("total_chunk_msg_size", 28, _I32, _OPTIONAL, ""),
        ("chunk_id", 29, _I32, _OPTIONAL, ""),
        ("null_partition_key", 30, _BOOL, _OPTIONAL, ""),
    ],
    "SingleMessageMetadata": [
        ("properties", 1, _MESSAGE, _REPEATED, "KeyValue"),
        ("partition_key", 2, _STRING, _OPTIONAL, ""),
        ("payload_size", 3, _I32, _REQUIRED, ""),
        ("compacted_out", 4, _BOOL, _OPTIONAL, ""),
        ("event_time", 5, _U64, _OPTIONAL, ""),
        ("partition_key_b64_encoded", 6, _BOOL, _OPTIONAL, ""),
        ("ordering_key", 7, _BYTES, _OPTIONAL, ""),
        ("sequence_id", 8, _U64, _OPTIONAL, ""),
        ("null_value", 9, _BOOL, _OPTIONAL, ""),
        ("null_partition_key", 10, _BOOL, _OPTIONAL, ""),
    ],
}
_CODECS = {1: "lz4_raw", 3: "zstd", 4: "snappy"}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="tests/messages.proto", package="tests.messages", syntax="proto2"
    )
    for name, fields in _DEFINITIONS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label, of in fields:
            one = message.field.add(name=field, number=number)
            one.type, one.label = kind, label  # type: ignore[assignment]
            if of:
                one.type_name = f".tests.messages.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tests.messages.{name}"))
        for name in _DEFINITIONS
    }


_CLASSES = _classes()


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry as it lies in a ledger. ``payload``: as it is there."""

    metadata: Any
    payload: bytes

    @property
    def plain(self) -> bytes:
        """The payload, not compressed."""
        kind, size = self.metadata.compression, self.metadata.uncompressed_size
        if not kind:
            return self.payload
        if kind == 2:
            found = zlib.decompress(self.payload)
        else:
            found = pa.Codec(_CODECS[kind]).decompress(self.payload, size, asbytes=True)
        assert len(found) == size
        return found


def parsed(name: str, data: bytes) -> Any:
    """The message, which has all that is required and nothing that is not known."""
    found = _CLASSES[name]()
    assert found.ParseFromString(data) == len(data)
    assert found.IsInitialized()
    # Fields that are not known would be written again, and fields twice would not.
    found.DiscardUnknownFields()
    assert len(found.SerializeToString()) == len(data)
    return found


def stored_entry(data: bytes) -> Stored:
    """Of magic, checksum, size, metadata, payload."""
    assert data[:2] == b"\x0e\x01"
    size = int.from_bytes(data[6:10], "big")
    return Stored(parsed("MessageMetadata", data[10 : 10 + size]), data[10 + size :])


def batch_of(payload: bytes) -> list[tuple[Any, bytes]]:
    """(SingleMessageMetadata, payload) of each message of a batch."""
    found = []
    at = 0
    while at < len(payload):
        size = int.from_bytes(payload[at : at + 4], "big")
        one = parsed("SingleMessageMetadata", payload[at + 4 : at + 4 + size])
        at += 4 + size
        found.append((one, payload[at : at + one.payload_size]))
        at += one.payload_size
    assert at == len(payload)
    return found
