"""Compiles every kernel of this room, or loads it from disk, before the first query needs it."""

from reader.decode.decoder import EntryDecoder
from reader.model import EntryBlock, Partition, Topic

# producer_name "p", sequence_id 0, publish_time 1, a property a=b twice
_HEAD = bytes.fromhex("0a0170 1000 1801 2206 0a0161 120162 2206 0a0161 120162")
_SINGLE = bytes.fromhex("0000000a 0a06 0a0161 120162 1801 78")


def _entry(metadata: bytes, payload: bytes) -> bytes:
    return len(metadata).to_bytes(4, "big") + metadata + payload


def prewarm() -> None:
    """Decode a small block with every kernel: about 1 s; 10 to 20 s where none is cached."""
    batch = _SINGLE * 2
    entries = [
        _entry(_HEAD + bytes.fromhex("820201ff"), b"x"),  # schema_id, which has no column
        _entry(_HEAD + bytes.fromhex("5802"), batch),
        # LZ4: a run of literals below 15 bytes is its length in the upper half of a byte
        _entry(_HEAD + bytes.fromhex("4001 4801"), b"\x10x"),
        _entry(_HEAD + bytes.fromhex("4001 481e 5802"), b"\xf0\x0f" + batch),
    ]
    block = EntryBlock.of(0, dict(enumerate(entries)))
    partition = Partition(Topic("public", "default", "prewarm"), -1)
    for decoder in (EntryDecoder(partition), EntryDecoder(partition, columns=(), payload=False)):
        rows = sum(len(messages) for messages in decoder.decode(block))
        if rows != 6:
            raise AssertionError(f"prewarm: {rows} rows instead of 6")
