"""One topic's turn: take the hold, plan, convert, commit, and let go of what is settled.

The order is the safety: nothing is read before the hold is there, nothing is let go before the
log has it. A stop at any point leaves files that nothing refers to, at worst; the next turn plans
anew from the log. Two offloaders on one topic: one commit wins, the other plans again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from offloader import hold
from offloader.commit import Addition, Advance, append
from offloader.convert import Converted, Job, Progress, convert, plan_tasks, write_rows
from offloader.killpoint import reached
from offloader.parquet import WrittenFile
from offloader.pending import given_up, reach_of, split_by_age, states_at
from offloader.policy import Due, due, within
from offloader.render import size_text
from offloader.statistics import statistics_columns
from offloader.work import due_ledgers, due_segments, due_splits
from reader.admin import AdminClient, PartitionLedgers
from reader.columns import METADATA
from reader.config import Config
from reader.decode import State, is_pending
from reader.errors import CommitConflictError
from reader.model import Partition, Position, Topic
from reader.rows import RowFormat
from reader.snapshot import check_same_topic, list_ledgers, payload_columns
from reader.table import TopicTable

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["Committed", "TopicOffloader", "Turn"]

_PLANS = 5  # how often a turn plans again after another offloader's commit


@dataclass(frozen=True, slots=True)
class Committed:
    """What one commit added."""

    version: int
    ledgers: int
    files: int
    rows: int
    bytes: int
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one turn. ``more``: the backlog goes on beyond this commit."""

    topic: Topic
    committed: Committed | None
    released: tuple[hold.Release, ...]
    more: bool


class TopicOffloader:
    """Gives turns to topics.

    ``context`` starts Spark when it is first needed. ``sleep`` and ``clock_ms`` are the outside
    world's; ``say`` is told, for operators, what is begun and what came in between.
    """

    def __init__(
        self,
        config: Config,
        admin: AdminClient,
        context: Callable[[], SparkContext],
        *,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        sleep: Callable[[float], None] = time.sleep,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._config = config
        self._admin = admin
        self._context = context
        self._clock_ms = clock_ms
        self._sleep = sleep
        self._say = say
        self._held: set[Partition] = set()

    def turn(
        self, topic: Topic, *, now: bool = False, progress: Progress = lambda done, total: None
    ) -> Turn:
        """One commit of what is due, if anything is, and the release of what is settled."""
        for left in reversed(range(_PLANS)):
            try:
                return self._turn(topic, now, progress)
            except CommitConflictError as error:
                if not left:
                    raise
                self._say(f"{topic}: another offloader was first, planning again: {error}")
        raise AssertionError("unreachable")

    def take_hold(self, topic: Topic) -> None:
        """Take the topic's hold ahead of its turn, once; later partitions are its turn's."""
        if not any(partition.topic == topic for partition in self._held):
            self._take(self._admin.partitions(topic))

    def release(self, topic: Topic) -> tuple[tuple[hold.Release, ...], float]:
        """Move the topic's hold to what has been in the log for ``grace``.

        Returns the moves, and the seconds until more is settled (0.0: nothing is waiting).
        """
        listed = list_ledgers(self._admin, self._admin.partitions(topic))
        table = TopicTable.open(self._config.storage, topic)
        return self._release(topic, listed, table) if table else ((), 0.0)

    @cached_property
    def _cluster(self) -> str:
        return self._admin.cluster()

    def _turn(self, topic: Topic, now: bool, progress: Progress) -> Turn:
        listed = self._hold(topic)
        table = TopicTable.open(self._config.storage, topic)
        released, _ = self._release(topic, listed, table) if table else ((), 0.0)
        dues = self._due(table, listed, now)
        chosen = within(dues)
        if not chosen:
            return Turn(topic, None, released, False)
        began = time.monotonic()
        self._say(_begin(topic, chosen))
        # Schemas after ledgers: every version that a listed message has is registered by now.
        addition = self._convert(topic, table, listed, chosen, progress)
        after = append(self._config.storage, table, addition, sleep=self._sleep)
        reached("committed")
        if not self._config.offload.grace:
            released += self.release(topic)[0]
        committed = Committed(
            version=after.version,
            ledgers=len(addition.ledgers),
            files=len(addition.files),
            rows=sum(file.rows for file in addition.files),
            bytes=sum(file.size for file in addition.files),
            seconds=time.monotonic() - began,
            reason=chosen[0].reason,
        )
        more = sum(len(one.ledgers) for one in chosen) < sum(len(one.ledgers) for one in dues)
        return Turn(topic, committed, released, more)

    # -- plan ----------------------------------------------------------------------------------

    def _hold(self, topic: Topic) -> Mapping[Partition, PartitionLedgers]:
        name = self._config.offload.subscription
        partitions = self._admin.partitions(topic)
        self._take(partitions)
        listed = list_ledgers(self._admin, partitions)
        for partition in hold.missing(listed, name):
            self._say(
                f"{partition}: subscription {name} was gone; made again, messages may be lost"
            )
        return hold.verify(self._admin, listed, name)

    def _take(self, partitions: Sequence[Partition]) -> None:
        new = [one for one in partitions if one not in self._held]
        hold.take(self._admin, new, self._config.offload.subscription)
        self._held.update(new)

    def _due(
        self, table: TopicTable | None, listed: Mapping[Partition, PartitionLedgers], now: bool
    ) -> list[Due]:
        found = []
        for partition, listing in listed.items():
            watermark = table.watermark(partition) if table else -1
            one = due(
                listing,
                watermark,
                clock_ms=self._clock_ms(),
                config=self._config.offload,
                now=now,
            )
            if one is not None:
                found.append(one)
        return found

    # -- convert -------------------------------------------------------------------------------

    def _convert(
        self,
        topic: Topic,
        table: TopicTable | None,
        listed: Mapping[Partition, PartitionLedgers],
        dues: Sequence[Due],
        progress: Progress,
    ) -> Addition:
        settings = self._config.offload
        schemas = self._admin.schemas(topic)
        fields = payload_columns(table, schemas)
        segments = due_segments(self._config, table, listed, dues)
        splits = due_splits(topic, fields, schemas, segments, settings.split_bytes)
        columns = pa.schema([*fields, *METADATA])
        job = Job(
            self._config,
            topic,
            RowFormat(fields, schemas, columns),
            statistics_columns(columns, settings.statistics_columns),
        )
        converted: tuple[Converted, ...] = ()
        if splits:
            tasks = plan_tasks(splits, settings.split_bytes)
            converted = convert(self._context(), job, tasks, progress=progress)
        files = [task.file for task in converted if task.file is not None]
        advances = []
        for one in dues:
            reach, late = self._pending(job, table, listed[one.partition], one, converted)
            advances.append(Advance(one.partition, one.watermark, one.upto, one.created_at, reach))
            files += late
        return Addition(
            topic=topic,
            advances=tuple(advances),
            files=tuple(files),
            ledgers=due_ledgers(listed, dues, segments, files),
            fields=fields,
            source=settings.source,
            cluster=self._cluster,
            statistics=tuple(settings.statistics_columns),
        )

    def _pending(
        self,
        job: Job,
        table: TopicTable | None,
        listing: PartitionLedgers,
        step: Due,
        converted: Sequence[Converted],
    ) -> tuple[Position | None, list[WrittenFile]]:
        """(where the first message begins that stays incomplete, a file of those given up)."""
        partition = step.partition
        states: dict[bytes, State] = {}
        before = table.reach(partition) if table else None
        if before is not None:
            states |= states_at(self._config, partition, step.watermark, before)
        for task in converted:
            if task.partition == partition:
                states |= task.chunks
        waiting = {uuid: state for uuid, state in states.items() if is_pending(state)}
        timeout_ms = int(self._config.offload.chunk_timeout.total_seconds() * 1000)
        old, young = split_by_age(waiting, (self._clock_ms() - timeout_ms) * 1000)
        if not old:
            return reach_of(young), []
        self._say(f"{partition}: {len(old)} chunked messages were never completed: given up")
        rows = given_up(self._config, listing, old, job.rows)
        file = write_rows(job, partition, step.upto, rows)
        return reach_of(young), [file] if file else []

    # -- let go --------------------------------------------------------------------------------

    def _release(
        self, topic: Topic, listed: Mapping[Partition, PartitionLedgers], newest: TopicTable
    ) -> tuple[tuple[hold.Release, ...], float]:
        settings = self._config.offload
        # What is let go was checked to be this topic's, and is in the log.
        for listing in listed.values():
            check_same_topic(newest, listing)
        if not hold.moves(listed, newest, settings.subscription):
            return (), 0.0
        table, wait = hold.settled(
            self._config.storage,
            newest,
            topic,
            clock_ms=self._clock_ms(),
            grace_ms=int(settings.grace.total_seconds() * 1000),
        )
        if table is None:
            return (), wait
        return tuple(hold.release(self._admin, listed, table, settings.subscription)), wait


def _begin(topic: Topic, dues: Sequence[Due]) -> str:
    ledgers = sum(len(one.ledgers) for one in dues)
    size = size_text(sum(one.bytes for one in dues))
    return f"{topic}: offloading {ledgers} ledgers ({size}); {dues[0].reason}"
