"""The chunked messages that conversions left incomplete, remembered from turn to turn.

They follow from the log, so what is forgotten is read again from the ledgers.
"""

import threading
from dataclasses import dataclass

from offloader.convert import ChunkSequences, lookback_of
from offloader.model import Due
from reader.model import Partition, Position
from reader.pulsar import PartitionLedgers

MOST_LEFT_CHUNKS = 131_072
"""The maximum number of chunks that are remembered between turns, of all topics: some 40 MB."""


@dataclass(frozen=True, slots=True)
class LeftIncomplete:
    """The messages that a conversion left incomplete at the end of ``upto``, and that it kept.

    They follow from the log, ``upto`` and where the first begins; so it matters not who committed.
    """

    created_at: str
    upto: int
    sequences: ChunkSequences

    @property
    def chunks(self) -> int:
        """The number of their chunks, and of the messages themselves."""
        return len(self.sequences) + sum(map(len, self.sequences.values()))

    def holds(self, step: Due, lookback: Position, listing: PartitionLedgers) -> bool:
        """Return whether a step begins with them, and all of their ledgers are listed."""
        same = (self.created_at, self.upto) == (step.created_at, step.watermark)
        there = {one.ledger_id for one in listing.ledgers}
        return (
            same
            and lookback_of(self.sequences) == lookback
            and all(one.ledger in there for chunks in self.sequences.values() for one in chunks)
        )


class LeftMemory:
    """The messages that conversions left incomplete, by partition, in bounded memory. Thread-safe.

    With more than MOST_LEFT_CHUNKS in all, the partitions that were noted longest ago are
    forgotten: what they left is read again from their ledgers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[Partition, LeftIncomplete] = {}
        self.chunks = 0

    def get(self, partition: Partition) -> LeftIncomplete | None:
        """Return what was left of the partition, if it is remembered."""
        return self._left.get(partition)

    def put(self, partition: Partition, left: LeftIncomplete | None) -> None:
        """Remember what is left of the partition now; None: nothing is."""
        with self._lock:
            before = self._left.pop(partition, None)
            self.chunks -= before.chunks if before is not None else 0
            if left is None or left.chunks > MOST_LEFT_CHUNKS:
                return
            self._left[partition] = left
            self.chunks += left.chunks
            while self.chunks > MOST_LEFT_CHUNKS:
                self.chunks -= self._left.pop(next(iter(self._left))).chunks
