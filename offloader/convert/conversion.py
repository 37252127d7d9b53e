"""What a topic's turn wants converted, and what comes of it.

A pack of splits is one Parquet file. A pack that runs twice (a retry, speculation) makes two files
of different names, and only the one whose result reached the driver can be committed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from offloader.convert.incomplete_chunks import ChunkSequences
from offloader.model import TaskCallback, Workers
from offloader.output import LakeWriter, WrittenFile
from offloader.parquet import ParquetWriter
from reader.config import ReadConfig
from reader.errors import PulsarLakeError
from reader.model import Partition, Split, Topic
from reader.plan import pack_splits
from reader.sources import RowFormat
from reader.storage import Storage


@dataclass(frozen=True, slots=True)
class ConversionSpec:
    """What every task needs to know; goes to the workers by pickle and is never printed."""

    settings: ReadConfig
    topic: Topic
    rows: RowFormat
    statistics: tuple[str, ...]

    def writer(self, storage: Storage) -> LakeWriter:
        """Return the writer of files with these rows."""
        return ParquetWriter(storage, self.topic, self.rows.columns, self.statistics)


@dataclass(frozen=True, slots=True)
class ConvertedPack:
    """What came of one pack: a file, if there was any row, and the ``partition``'s chunked messages
    as it left them: the chunks of those that are incomplete, or that ended with a chunk of another
    pack that stayed encrypted. ``slow``: it took much longer than packs of its size do."""

    partition: Partition
    file: WrittenFile | None
    chunks: ChunkSequences
    slow: bool = False


@dataclass(frozen=True, slots=True)
class SlowPack:
    """A pack that was given up after ``seconds``, because others wait for the worker."""

    seconds: float


class SlowError(Exception):
    """A conversion was given up because it is slow. ``Workers.SLOW`` give it the time it needs."""


Pack = tuple[Split, ...]
"""Splits of one partition, ledgers ascending: one file."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What the turn of one topic wants converted.

    ``workers``: who converts it. ``patience``: seconds after which each of its packs is given up.
    ``begun`` is called when the first job starts that has a part of it.
    """

    spec: ConversionSpec
    packs: tuple[Pack, ...]
    workers: Workers = Workers.HEALTHY
    patience: float = math.inf
    begun: Callable[[], None] = lambda: None
    progress: TaskCallback = lambda done, total: None

    @property
    def bytes(self) -> int:
        return sum(map(pack_bytes, self.packs))


PackOutcome = ConvertedPack | PulsarLakeError | SlowPack | None
"""What came of one pack: its result, why there is none, or None if it was not begun."""

ConversionOutcome = tuple[PackOutcome, ...]
"""What came of a conversion's packs in a job, in their order."""


def pack_bytes(pack: Pack) -> int:
    """Return how many bytes BookKeeper stores of a pack."""
    return sum(split.bytes for split in pack)


def plan_packs(splits: Sequence[Split], target_bytes: int) -> tuple[Pack, ...]:
    """The splits as packs of about ``target_bytes``, each of one partition."""
    by_partition: dict[int, list[Split]] = {}
    for split in splits:
        by_partition.setdefault(split.partition.index, []).append(split)
    packs = [pack for some in by_partition.values() for pack in pack_splits(some, target_bytes)]
    return tuple(tuple(pack) for pack in packs)
