"""What a topic's turn wants converted, and what comes of it.

A pack of splits is one Parquet file. A pack that runs twice (a retry, speculation) makes two files
of different names, and only the one whose result reached the driver can be committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from offloader.convert.incomplete_chunks import ChunkSequences
from offloader.model import TaskCallback, WrittenFile
from reader.config import ReadConfig
from reader.errors import PulsarLakeError
from reader.model import Partition, Split, Topic
from reader.plan import pack_splits
from reader.sources import RowFormat

__all__ = [
    "Conversion",
    "ConversionOutcome",
    "ConversionSpec",
    "ConvertedPack",
    "Pack",
    "plan_packs",
]


@dataclass(frozen=True, slots=True)
class ConversionSpec:
    """What every task needs to know; goes to the workers by pickle and is never printed."""

    settings: ReadConfig
    topic: Topic
    rows: RowFormat
    statistics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConvertedPack:
    """What came of one pack: a file, if there was any row, and the ``partition``'s chunked messages
    as it left them: the chunks of those that are incomplete, or that ended with a chunk of another
    pack that stayed encrypted."""

    partition: Partition
    file: WrittenFile | None
    chunks: ChunkSequences


Pack = tuple[Split, ...]
"""Splits of one partition, ledgers ascending: one file."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What the turn of one topic wants converted.

    ``suspect``: its last turn failed. ``begun`` is called when the job starts that it is part of.
    """

    spec: ConversionSpec
    packs: tuple[Pack, ...]
    suspect: bool = False
    begun: Callable[[], None] = lambda: None
    progress: TaskCallback = lambda done, total: None

    @property
    def bytes(self) -> int:
        return sum(split.bytes for pack in self.packs for split in pack)


ConversionOutcome = tuple[ConvertedPack, ...] | PulsarLakeError
"""What came of one conversion: its packs' results in their order, or why there are none."""


def plan_packs(splits: Sequence[Split], target_bytes: int) -> tuple[Pack, ...]:
    """The splits as packs of about ``target_bytes``, each of one partition."""
    by_partition: dict[int, list[Split]] = {}
    for split in splits:
        by_partition.setdefault(split.partition.index, []).append(split)
    packs = [pack for some in by_partition.values() for pack in pack_splits(some, target_bytes)]
    return tuple(tuple(pack) for pack in packs)
