"""CPU a message to count messages of batches, by codec (decision 19).

No servers: blocks of entries are made and decoded in this process. Each batch is split, so a codec
costs what its decompression costs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.case import Bench, Case
from benchmarks.measure import Contender, Result, take_turns
from reader.decode import EntryDecoder
from reader.encode.compression import Compression, compress
from reader.model import EntryBlock, Partition, Topic
from testbed.simulation import message_entry

__all__ = ["CASES"]

_BYTES, _BATCH, _ENTRIES = 150, 500, 40
_BLOCKS, _QUICK_BLOCKS = 25, 1
_CODECS = (Compression.NONE, Compression.LZ4, Compression.ZSTD, Compression.ZLIB)


def _run(bench: Bench) -> list[Result]:
    blocks = _QUICK_BLOCKS if bench.quick else _BLOCKS
    messages = blocks * _ENTRIES * _BATCH
    bench.say(f"messages of {_BYTES} bytes, {_BATCH} to a batch, {_ENTRIES} entries to a block")
    made = {codec: [_block(codec, number) for number in range(blocks)] for codec in _CODECS}
    spent = take_turns(
        {codec.name: Contender(partial(_count, some), messages) for codec, some in made.items()},
        bench.repeats,
        clock=time.process_time,
    )
    return [
        bench.result(name, "CPU ns/message", [seconds / messages * 1e9 for seconds in taken])
        for name, taken in spent.items()
    ]


def _block(codec: Compression, number: int) -> EntryBlock:
    source = random.Random(number)
    entries = {}
    for entry in range(_ENTRIES):
        values = [_event(source, entry * _BATCH + row) for row in range(_BATCH)]
        entries[entry] = message_entry(
            values,
            publish_ms=1_700_000_000_000 + entry,
            batch=True,
            compressed=codec is not Compression.NONE,
            codec=int(codec),
            compress=lambda payload: compress(codec, memoryview(payload)),
        )
    return EntryBlock.of(number, entries)


def _event(source: random.Random, number: int) -> bytes:
    trace = source.randbytes(24).hex()
    text = f'{{"id":{number},"user":{source.randrange(10_000)},"trace":"{trace}","kind":"'
    return (text + "view" * _BYTES)[: _BYTES - 2].encode() + b'"}'


def _count(blocks: Sequence[EntryBlock]) -> int:
    """Count as `count(*)` of a hot ledger does."""
    partition = Partition(Topic.parse("public/default/counted"), 0)
    decoder = EntryDecoder(partition, columns=(), payload=False, headers_only=True)
    return sum(len(messages) for block in blocks for messages in decoder.decode(block))


CASES = (Case("counts", "CPU a message to count messages of batches, by codec", _run),)
