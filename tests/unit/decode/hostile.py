"""Entries of a few kB that become many rows or long ones, and what reading each costs.

``python -m tests.unit.decode.hostile`` prints the peak of memory after each, in MiB above what an
ordinary entry takes, and the number of rows and of those that are rescued.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from reader.decode import Decryption
from reader.decode.partition_context import NoContext
from reader.model import EntryBlock, Partition, SchemaInfo, Topic
from reader.model.columns import METADATA
from reader.payload import payload_fields
from reader.sources.row_format import RowFormat
from reader.sources.rows import RowBuilder
from testbed.usage import peak_bytes
from tests.unit.decode.entries import compress, entry, metadata, single
from tests.unit.decode.test_decryption import RSA, for_rsa, pem, sealed_entry

SCHEMAS = (SchemaInfo(0, "BYTES", ""),)
FIELDS = payload_fields(SCHEMAS)
FORMAT = RowFormat(FIELDS, SCHEMAS, pa.schema([*FIELDS, *METADATA]))


def batch(one: bytes, count: int, **values: Any) -> bytes:
    zstd = {"compression": 3, "checksum": False}
    return entry(one * count, num_messages_in_batch=count, **zstd | values)


def millions_of_messages() -> bytes:
    return batch(single(b""), 1 << 22)


def a_long_producer_name() -> bytes:
    return batch(single(b""), 250, producer_name="p" * 1_000_000)


def a_size_that_is_only_stated() -> bytes:
    return entry(b"x", compression=4, uncompressed_size=512 << 20)


def half_a_gigabyte_of_zeros() -> bytes:
    raw = compress(3, bytes(500 << 20))
    head = metadata(compression=3, uncompressed_size=500 << 20)
    return len(head).to_bytes(4, "big") + head + raw


def millions_of_properties() -> bytes:
    many = b"\x0a\x04\x0a\x00\x12\x00" * 2_000_000 + b"\x18\x00"
    return batch(len(many).to_bytes(4, "big") + many, 1)


def thousands_of_properties_in_each_message() -> bytes:
    return batch(single(b"", properties=[(b"", b"")] * 5000), 800)


def a_header_in_each_rescued_row() -> bytes:
    name = "r" * 1_000_000
    return batch(single(b"", partition_key=b"\xff"), 250, replicated_from=name)


def a_name_that_is_repeated_too_often() -> bytes:
    return batch(single(b""), 100_000, producer_name="p" * 1_000_000)


def a_context_in_each_row() -> bytes:
    keys = {"k": for_rsa(), "other": b"x" * 100_000}
    return sealed_entry(single(b"") * 2000, keys, num_messages_in_batch=2000)


def a_field_without_a_column_in_each_row() -> bytes:
    return batch(single(b""), 250, unknown=b"u" * 1_000_000)


def a_batch_of_impossible_size() -> bytes:
    return batch(single(b""), 10, again={"num_messages_in_batch": 1 << 22})


CASES: tuple[Callable[[], bytes], ...] = (
    a_size_that_is_only_stated,
    a_batch_of_impossible_size,
    half_a_gigabyte_of_zeros,
    millions_of_messages,
    a_long_producer_name,
    millions_of_properties,
    thousands_of_properties_in_each_message,
    a_header_in_each_rescued_row,
    a_context_in_each_row,
    a_field_without_a_column_in_each_row,
    a_name_that_is_repeated_too_often,
)


def read(raw: bytes, keys: Mapping[str, bytes]) -> tuple[int, int]:
    """Return the number of rows, and of rescued rows. Each batch is forgotten before the next."""
    builder = RowBuilder(Partition(Topic("a", "b", "t" * 200), -1), FORMAT)
    decoder = builder.entry_decoder(NoContext(), decryption=Decryption(keys.get))
    rows = rescued = 0
    for messages in decoder.decode(EntryBlock.of(7, {0: raw})):
        for batch in builder.build(messages):
            rows += batch.num_rows
            rescued += batch.num_rows - batch.column("__error").null_count
    return rows, rescued


def peak() -> int:
    return peak_bytes(os.getpid()) >> 20


def main() -> None:
    keys = {"k": pem(RSA)}
    read(batch(single(b"x" * 100, partition_key="k", properties=[(b"a", b"b")]), 1000), keys)
    entries = [(case.__name__, case()) for case in CASES]
    before = peak()
    for name, raw in entries:
        rows, rescued = read(raw, keys)
        print(name, len(raw), rows, rescued, peak() - before, flush=True)


if __name__ == "__main__":
    main()
