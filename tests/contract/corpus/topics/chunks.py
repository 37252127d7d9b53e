"""Chunked messages by the Java client, and chunk by chunk."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Any

from testbed.oracle import Json, Oracle
from tests.contract.corpus import Kind, Place
from tests.contract.java import body
from tests.contract.rows import Key


@dataclass
class Chunked:
    """A message to be sent chunk by chunk."""

    oracle: Oracle
    topic: str
    name: str
    body: bytes
    chunks: int
    compression: str = "NONE"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        none = self.compression == "NONE"
        self.packed = self.body if none else self.oracle.compress(self.body, self.compression)
        self.size = math.ceil(len(self.packed) / self.chunks)

    def send(self, *numbers: int) -> Key:
        """Send some chunks, and return where the last of them is."""
        for number in numbers:
            ledger, entry, partition, batch = self.oracle.raw_chunk(
                self.topic,
                f"producer of {self.name}",
                f"uuid of {self.name}",
                number,
                self.chunks,
                len(self.packed),
                self.packed[number * self.size : (number + 1) * self.size],
                sequence_id=7,
                compression=self.compression,
                uncompressed_size=len(self.body),
                **self.options,
            )
        return partition, ledger, entry, batch


def _interleaved(to: Place) -> Iterator[None]:
    a, b, c = (
        Chunked(to.oracle, to.topic, name, body(9_000), 4, compression)
        for name, compression in (("a", "LZ4"), ("b", "ZSTD"), ("c", "NONE"))
    )
    a.send(0)
    b.send(0)
    c.send(0)
    to.write([{"value": b"between"}])
    b.send(1, 2)
    a.send(1)
    yield
    c.send(1, 2)
    a.send(2)
    yield
    to.known[c.send(3)] = {"value": c.body}
    to.known[a.send(3)] = {"value": a.body}
    yield
    to.known[b.send(3)] = {"value": b.body}


def _by_producers(to: Place) -> Iterator[None]:
    """As clients chunk, with each compression."""
    sizes = (10, 3_000, 20_000, 100_000)
    for part in (sizes[:2], sizes[2:]):
        for compression in ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"):
            messages: list[Json] = [
                {"value": body(size), "key": f"k{size}", "properties": {"n": "1"}, "event_time": 5}
                for size in part
            ]
            keys = to.write(messages, chunk_size=2_000, compression=compression)
            to.known |= {
                key: {"value": message["value"]}
                for key, message in zip(keys, messages, strict=True)
            }
        if part == sizes[:2]:
            yield


# Chunks of three in the order in which they are sent, how many messages come of them, and which
# of what was sent gives a row of its own, because its message's first chunks are missing.
_SENT: list[tuple[Sequence[int], int, Sequence[int]]] = [
    ((0, 0, 1, 2), 1, []),
    ((0, 1, 0, 1, 2), 1, []),
    ((0, 1, 1, 2), 1, []),
    ((0, 1, 2, 2), 1, []),
    ((0, 1, 2, 0, 1, 2), 2, []),
    ((0, 1), 0, []),
    ((0,), 0, []),
    ((0, 2), 0, [1]),
    ((1, 2), 0, [0, 1]),
    ((2,), 0, [0]),
    ((0, 2, 0, 1, 2), 1, [1]),
]


def _sent_again(to: Place, *, sealed: bool) -> Iterator[None]:
    """Chunks that are sent again, are missing or never come; each in a ledger of its own, or all
    in one."""
    to.write([{"value": b"before"}])
    orders = []
    for sent, _, strays in _SENT:
        compression = "NONE" if strays else "LZ4"
        message = Chunked(to.oracle, to.topic, str(sent), body(5_000), 3, compression)
        orders.append([(message, number, n in strays) for n, number in enumerate(sent)])
    for step in zip_longest(*orders):
        for message, number, is_stray in filter(None, step):
            key = message.send(number)
            if is_stray:
                to.strays.append(key)
        if sealed:
            yield
    to.write([{"value": b"after"}])


def _at_the_end(to: Place, *, sent: Sequence[int]) -> Iterator[None]:
    """The last entry is there, and gives no message."""
    to.write([{"value": b"before"}])
    message = Chunked(to.oracle, to.topic, "a", body(5_000), 3)
    end = message.send(*sent)
    if sent == (0, 2):
        to.strays.append(end)
    yield from ()


def _alone(to: Place) -> Iterator[None]:
    """The last chunk is alone in the open ledger."""
    message = Chunked(to.oracle, to.topic, "a", body(5_000), 2)
    message.send(0)
    yield
    to.known[message.send(1)] = {"value": message.body}


_ROWS = 2 + sum(rows for _, rows, _ in _SENT)

KINDS = [
    Kind("chunks-interleaved", 4, _interleaved, halves=True, twice=True),
    Kind("chunks-by-producers", 20, _by_producers, halves=True, twice=True),
    Kind("chunks-sent-again", _ROWS, partial(_sent_again, sealed=False), twice=True),
    Kind("chunks-a-ledger-each", _ROWS, partial(_sent_again, sealed=True), halves=True, twice=True),
    *(
        Kind(
            f"chunks-at-the-end-{'-'.join(map(str, sent))}",
            2 if len(sent) == 4 else 1,
            partial(_at_the_end, sent=sent),
            twice=True,
        )
        for sent in ((0, 2), (0, 1, 2, 2), (0,), (0, 1))
    ),
    Kind("chunks-alone", 1, _alone, halves=True, twice=True),
]
