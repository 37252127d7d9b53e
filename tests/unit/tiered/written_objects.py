"""Objects as Pulsar's drivers write them, byte by byte from the formats' descriptions.

Nothing of the product is used here: this is what its codecs are compared with.
"""

import bz2
import gzip
import struct
import zlib
from collections.abc import Callable, Sequence

CODECS: dict[str, Callable[[bytes], bytes]] = {
    "org.apache.hadoop.io.compress.DefaultCodec": zlib.compress,
    "org.apache.hadoop.io.compress.GzipCodec": gzip.compress,
    "org.apache.hadoop.io.compress.BZip2Codec": bz2.compress,
}
_SYNC = bytes(range(100, 116))
_SYNC_EACH = 100 * 20  # Hadoop's distance between sync markers
_PADDING = bytes.fromhex("fedcdead")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def ledger_metadata(entries: Sequence[bytes]) -> bytes:
    """``LedgerMetadataFormat`` of a closed ledger, with what else a real one has in it."""
    length = sum(map(len, entries))
    fields = [(1, 2), (2, 3), (3, length), (4, len(entries) - 1), (5, 3), (7, 3), (9, 2), (10, 5)]
    found = b"".join(_varint(number << 3) + _varint(value) for number, value in fields)
    ensemble = b"\x0a\x03b:1\x10\x00"
    custom = b"\x0a\x01k\x12\x01v"
    for number, inner in ((6, ensemble), (11, custom)):
        found += _varint(number << 3 | 2) + _varint(len(inner)) + inner
    return found


def jcloud_objects(entries: Sequence[bytes], block_size: int = 1 << 20) -> tuple[bytes, bytes]:
    """(index, data object): entries in blocks of ``block_size``, of which the last is shorter."""
    blocks: list[tuple[int, int]] = []
    data = bytearray()
    entry = 0
    while entry < len(entries):
        first, body = entry, bytearray()
        while entry < len(entries) and 128 + len(body) + 12 + len(entries[entry]) <= block_size:
            body += struct.pack(">iq", len(entries[entry]), entry) + entries[entry]
            entry += 1
        assert entry > first, "Pulsar does not store an entry that fits in no block"
        # The last one is as long as what is in it.
        length = block_size if entry < len(entries) else 128 + len(body)
        blocks.append((first, len(data)))
        head = struct.pack(">Iqqq", 0xFBDBABCB, 128, length, first).ljust(128, b"\0")
        rest = length - 128 - len(body)
        data += head + body + (_PADDING * (rest // 4 + 1))[:rest]
    metadata = ledger_metadata(entries)
    table = b"".join(
        struct.pack(">qiq", first, part + 1, at) for part, (first, at) in enumerate(blocks)
    )
    total = 32 + len(metadata) + len(table)
    head = struct.pack(">IIqqii", 0xDE47DE47, total, len(data), 128, len(blocks), len(metadata))
    return head + metadata + table, bytes(data)


def vint(value: int) -> bytes:
    """``WritableUtils.writeVInt``."""
    if -112 <= value <= 127:
        return struct.pack(">b", value)
    lead, rest = (-120, ~value) if value < 0 else (-112, value)
    body = rest.to_bytes((rest.bit_length() + 7) // 8, "big")
    return struct.pack(">b", lead - len(body)) + body


def _text(value: str) -> bytes:
    return vint(len(value.encode())) + value.encode()


def _header(value_class: str, compressed: bool, blocks: bool, codec: str) -> bytes:
    head = b"SEQ\x06" + _text("org.apache.hadoop.io.LongWritable")
    head += _text(f"org.apache.hadoop.io.{value_class}") + bytes([compressed, blocks])
    return head + (_text(codec) if compressed else b"") + struct.pack(">i", 0) + _SYNC


def _block(
    keys: Sequence[int], values: Sequence[bytes], compress: Callable[[bytes], bytes]
) -> bytes:
    out = b"\xff" * 4 + _SYNC + vint(len(keys))
    for part in (
        vint(8) * len(keys),
        b"".join(struct.pack(">q", one) for one in keys),
        b"".join(vint(len(one)) for one in values),
        b"".join(values),
    ):
        packed = compress(part)
        out += vint(len(packed)) + packed
    return out


def map_file_objects(
    entries: Sequence[bytes],
    kind: str = "NONE",
    *,
    codec: str = "org.apache.hadoop.io.compress.DefaultCodec",
    interval: int = 8,
    block_size: int = 1000,
) -> tuple[bytes, bytes]:
    """(data, index) of a MapFile: the metadata under -1, then the entries.

    ``kind``: NONE, RECORD or BLOCK; ``interval``: of the index, in records; ``block_size``: of
    keys and values, uncompressed.
    """
    compress = CODECS.get(codec, zlib.compress)
    data = bytearray(_header("BytesWritable", kind != "NONE", kind == "BLOCK", codec))
    indexed: list[tuple[int, int]] = []
    buffered: list[tuple[int, bytes]] = []
    synced = 0

    def flush() -> None:
        if buffered:
            data.extend(_block([k for k, _ in buffered], [v for _, v in buffered], compress))
            buffered.clear()

    count = 0
    for key, value in enumerate([ledger_metadata(entries), *entries], -1):
        # As MapFile.Writer does it: the position before the record is written.
        if (not indexed or count >= interval) and (not indexed or len(data) > indexed[-1][1]):
            indexed.append((key, len(data)))
            count = 0
        count += 1
        written = struct.pack(">i", len(value)) + value
        if kind == "BLOCK":
            buffered.append((key, written))
            if sum(8 + len(one) for _, one in buffered) >= block_size:
                flush()
            continue
        if len(data) >= synced + _SYNC_EACH:
            synced = len(data)
            data += b"\xff" * 4 + _SYNC
        stored = compress(written) if kind == "RECORD" else written
        data += struct.pack(">iiq", 8 + len(stored), 8, key) + stored
    flush()
    return bytes(data), index_of(indexed, codec)


def index_of(
    pairs: Sequence[tuple[int, int]], codec: str = "org.apache.hadoop.io.compress.DefaultCodec"
) -> bytes:
    """The index of a MapFile: keys, and where a read of the data may begin."""
    keys, places = [key for key, _ in pairs], [struct.pack(">q", at) for _, at in pairs]
    compress = CODECS.get(codec, zlib.compress)
    return _header("LongWritable", True, True, codec) + _block(keys, places, compress)
