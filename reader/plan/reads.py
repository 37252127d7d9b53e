"""What a plan reads, as values that ``reader.sources.read_rows`` executes, here or in a task.

A read is picklable, needs no other read, and is as large as one task should be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reader.model import Partition, Position, Split, Topic
from reader.plan.cold_files import ColdFile
from reader.plan.completeness import CompactedPart
from reader.plan.plan import TASK_BYTES, Plan
from reader.plan.splitting import pack_splits
from reader.table import TopicTable

_LEAST_BYTES = 8 << 20
"""A task that reads less is mostly overhead."""
_LAST_POSITION = Position((1 << 63) - 1, 0)


@dataclass(frozen=True, slots=True)
class SplitsRead:
    """Splits of one topic, read one after the other.

    ``fall_back``: whether another tier may give what a split's own tier cannot. The offloader
    forbids it: a slow bookie must not cost a row its columns. ``decrypt``: whether configured keys
    open encrypted entries.
    """

    splits: tuple[Split, ...]
    fall_back: bool = True
    decrypt: bool = True

    @property
    def place(self) -> dict[str, object]:
        """What is read, for the context of errors."""
        first, last = self.splits[0], self.splits[-1]
        ledgers = [first.ledger_id, last.ledger_id]
        return {"partition": first.partition.full_name, "ledgers": ledgers}


@dataclass(frozen=True, slots=True)
class FilesRead:
    """Files of one version of the topic's table.

    ``without_encrypted``: leave out the rows of encrypted entries, which other reads decrypt.
    """

    topic: Topic
    version: int | None
    files: tuple[ColdFile, ...]
    without_encrypted: bool = False

    @property
    def place(self) -> dict[str, object]:
        """What is read, for the context of errors."""
        return {"files": len(self.files)}


@dataclass(frozen=True, slots=True)
class EncryptedRead:
    """Encrypted entries of one partition that a version of the table holds, decrypted.

    ``within``: the first and the last position that is wanted (inclusive), or None for all.
    ``given_up_to``: of messages that were given up, those that begin up to there; None for all.
    ``table``: the version, if it is open in this process; None in a read that travels.
    """

    partition: Partition
    version: int
    within: tuple[Position, Position] | None = None
    given_up_to: Position | None = None
    table: TopicTable | None = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> dict[str, object]:
        """What is read, for the context of errors."""
        return {"partition": self.partition.full_name, "version": self.version}


@dataclass(frozen=True, slots=True)
class CompactedRead:
    """What Pulsar's compaction has kept of ledgers that Pulsar has deleted."""

    part: CompactedPart

    @property
    def place(self) -> dict[str, object]:
        """What is read, for the context of errors."""
        return {"partition": self.part.partition.full_name}


@dataclass(frozen=True, slots=True)
class CountRead:
    """Rows without a column, whose number is known without reading them."""

    rows: int

    @property
    def place(self) -> dict[str, object]:
        """Nothing: no error has this context."""
        return {}


Read = SplitsRead | FilesRead | EncryptedRead | CompactedRead | CountRead


def plan_reads(
    plan: Plan,
    parallelism: int = 1,
    *,
    split_bytes: tuple[int, int] = (_LEAST_BYTES, TASK_BYTES),
    file_bytes: int = TASK_BYTES,
) -> tuple[Read, ...]:
    """Return the reads that together give all rows of a plan, each row once.

    parallelism: number of reads that run at once. split_bytes: least and most bytes of splits in
    one read. file_bytes: most bytes of files in one read, unless one file has more.
    """
    snapshot = plan.snapshot
    sealed = snapshot.ciphertext
    least, most = split_bytes
    total = sum(split.bytes for split in plan.splits)
    size = max(least, min(most, total // max(1, parallelism)))
    reads: list[Read] = [
        # Pulsar may replace a compacted ledger at any time, so these come first.
        *map(CompactedRead, snapshot.compacted),
        *(
            FilesRead(plan.topic, plan.version, tuple(pack), sealed is not None)
            for pack in _pack_files(plan, file_bytes)
        ),
        *(SplitsRead(tuple(pack)) for pack in pack_splits(plan.splits, size)),
    ]
    if plan.counted:
        reads.append(CountRead(plan.counted))
    if sealed is not None:
        left_out = {one.partition: one for one in snapshot.compacted if one.first < one.before}
        reads += [
            EncryptedRead(partition, sealed.version, within, table=snapshot.table)
            for partition in sealed.partitions
            for within in (_around(left_out[partition]) if partition in left_out else (None,))
        ]
    return tuple(reads)


def _around(part: CompactedPart) -> Iterator[tuple[Position, Position]]:
    """Yield the ranges of a table's rows that a compacted view reads there."""
    if part.first:
        yield Position(0, 0), Position(part.first - 1, _LAST_POSITION.ledger)
    yield Position(part.before, 0), _LAST_POSITION


def _pack_files(plan: Plan, most_bytes: int) -> Sequence[Sequence[ColdFile]]:
    packs: list[list[ColdFile]] = []
    size = 0
    for file in (one.file for one in plan.cold if one.read):
        if not packs or size + file.bytes > most_bytes:
            packs.append([])
            size = 0
        packs[-1].append(file)
        size += file.bytes
    return packs
