"""One topic's turn: take the hold, plan, convert, commit, and let go of what is settled.

The order is the safety: nothing is read before the hold is there, nothing is let go before the
log has it. A stop at any point leaves files that nothing refers to, at worst; the next turn plans
anew from the log. Two offloaders on one topic: one commit wins, the other plans again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from offloader.cli.render import size_text
from offloader.commit.append import Addition, Advance, append
from offloader.commit.external_commits import ForeignWatch
from offloader.commit.file_age import fresh_ms
from offloader.config import Config, OffloadConfig
from offloader.convert.conversion import Converted, Job, Progress, Work, plan_packs, write_rows
from offloader.convert.incomplete_chunks import given_up, reach_of, split_by_age, states_at
from offloader.convert.jobs import Jobs
from offloader.convert.work import due_ledgers, due_segments, due_splits
from offloader.killpoint import reached
from offloader.model.patterns import settings_of
from offloader.parquet.statistics import statistics_columns
from offloader.parquet.writer import WrittenFile
from offloader.schedule.observation import Look
from offloader.schedule.policy import Due, backlog, due, opened_at, within
from offloader.subscription import hold
from offloader.subscription.gap_tracker import Watch, filled_above
from offloader.subscription.retention_checks import dangers
from reader.decode import State, is_pending
from reader.errors import CommitConflictError, ConfigurationError, UnavailableError
from reader.model import Partition, Position, Topic
from reader.model.columns import METADATA
from reader.plan.data_loss import Gap
from reader.plan.snapshot import check_same_topic, list_ledgers, payload_columns
from reader.pulsar.admin import AdminClient, PartitionLedgers
from reader.sources.rows import RowFormat
from reader.storage import open_storage
from reader.table import TopicTable

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["STAGES", "Committed", "TopicOffloader", "Turn"]

STAGES = ("list", "plan", "wait", "convert", "commit", "release")
"""What a turn's time goes to: Pulsar's lists and the table's log; schemas and splits; waiting for
a Spark job; that job; the commit; moving the hold."""

_CHECK_MS = 3_600_000

_PLANS = 5  # how often a turn plans again after another offloader's commit


@dataclass(frozen=True, slots=True)
class Committed:
    """What one commit added.

    ``bytes``: of its files; ``stored``: of its ledgers, as BookKeeper counts them. ``rescued``:
    rows with an ``__error``.
    """

    version: int
    ledgers: int
    files: int
    rows: int
    bytes: int
    seconds: float
    reason: str
    stored: int = 0
    rescued: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one turn. ``more``: there is work left that is due. ``look``: what is known."""

    topic: Topic
    committed: Committed | None
    released: tuple[hold.Release, ...]
    more: bool
    look: Look


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was asked of a turn."""

    now: bool
    only_look: bool
    urgency: float
    suspect: bool
    progress: Progress


class TopicOffloader:
    """Gives turns to topics; several at once, each to another topic.

    ``context`` starts Spark when it is first needed. ``sleep`` and ``clock_ms`` are the outside
    world's; ``say`` is told, for operators, what is begun and what came in between; ``took``, how
    long each stage of a turn was (``STAGES``), in seconds.
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
        took: Callable[[str, float], None] = lambda stage, seconds: None,
    ) -> None:
        self._config = config
        self._admin = admin
        self._clock_ms = clock_ms
        self._sleep = sleep
        self._say = say
        self._took = took
        self._held: set[Partition] = set()
        self._claimed: set[Partition] = set()
        self._watch = Watch()
        self._storage = open_storage(config.storage)
        self._foreign = ForeignWatch(self._storage)
        self._dangers: dict[Topic, tuple[int, tuple[str, ...]]] = {}
        self.jobs = Jobs(context)

    def turn(
        self,
        topic: Topic,
        *,
        now: bool = False,
        only_look: bool = False,
        urgency: float = 0.0,
        suspect: bool = False,
        progress: Progress = lambda done, total: None,
    ) -> Turn:
        """One commit of what is due, if anything is, and the release of what is settled.

        ``now``: all sealed ledgers are due, whatever the settings say. ``only_look``: nothing is
        converted, and ``more`` says whether something is due. ``urgency`` and ``suspect``: see
        ``Work``. Raises StoppedError if it was stopped before its conversion began.
        """
        wish = _Wish(now, only_look, urgency, suspect, progress)
        for left in reversed(range(_PLANS)):
            try:
                return self._turn(topic, wish)
            except CommitConflictError as error:
                if not left:
                    raise
                self._say(f"{topic}: planning again: {error}")
        raise AssertionError("unreachable")

    def release(self, topic: Topic) -> tuple[tuple[hold.Release, ...], float]:
        """Move the topic's hold to what has been in the log for ``grace``.

        Returns the moves, and the seconds until more is settled (0.0: nothing is waiting).
        """
        listed = list_ledgers(self._admin, self._admin.partitions(topic))
        table = TopicTable.open(self._storage, topic)
        return self._release(topic, listed, table) if table else ((), 0.0)

    def _release_at_once(self, topic: Topic) -> tuple[hold.Release, ...] | None:
        """After a commit, which counts: None, for the next turn to let go, where that fails now."""
        try:
            return self.release(topic)[0]
        except UnavailableError as error:
            self._say(f"{topic}: committed, but the hold is not moved yet: {error}")
            return None

    @cached_property
    def _cluster(self) -> str:
        return self._admin.cluster()

    def _settings(self, topic: Topic) -> OffloadConfig:
        return settings_of(self._config.offload, topic)

    def _turn(self, topic: Topic, wish: _Wish) -> Turn:
        began_ms = self._clock_ms()
        with self._timed("list"):
            self._check_dangers(topic)
            listed = self._hold(topic)
            if not wish.only_look:
                listed = self._roll_over(topic, listed)
            table = TopicTable.open(self._storage, topic)
        for foreign in self._foreign.news(table) if table else ():
            self._say(f"{topic}: {foreign}")
        gaps = self._watch.gaps(table, listed)
        for gap in gaps:
            self._say(str(gap))
        notes = (*self._dangers[topic][1], *map(str, gaps))
        if table is not None and table.has_gaps:
            notes += ("messages were deleted before they were offloaded: status has the ledgers",)
        listed = self._hold_again(listed, table)
        released, wait = self._release(topic, listed, table) if table else ((), 0.0)
        watermarks = {one: table.watermark(one) if table else -1 for one in listed}
        dues = self._due(topic, listed, watermarks, wish.now)
        chosen = within(dues)
        if wish.only_look or not chosen:
            look = self._look(topic, began_ms, listed, watermarks, wait, notes)
            return Turn(topic, None, released, bool(chosen), look)
        if table is None:
            self._require_unclaimed(topic, listed)
        began = time.monotonic()
        # Schemas after ledgers: every version that a listed message has is registered by now.
        addition = self._convert(topic, table, listed, chosen, gaps, wish)
        with self._timed("commit"):
            after = append(self._storage, table, addition, sleep=self._sleep)
        reached("committed")
        grace = self._settings(topic).grace.total_seconds()
        at_once = () if grace else self._release_at_once(topic)
        committed = Committed(
            version=after.version,
            ledgers=len(addition.ledgers),
            files=len(addition.files),
            rows=sum(file.rows for file in addition.files),
            bytes=sum(file.size for file in addition.files),
            seconds=time.monotonic() - began,
            reason=chosen[0].reason,
            stored=sum(one.bytes for one in addition.ledgers),
            rescued=sum(file.rescued for file in addition.files),
        )
        watermarks |= {one.partition: one.upto for one in chosen}
        look = self._look(topic, began_ms, listed, watermarks, wait or grace, notes)
        more = sum(len(one.ledgers) for one in chosen) < sum(len(one.ledgers) for one in dues)
        return Turn(topic, committed, released + (at_once or ()), more or at_once is None, look)

    # -- plan ----------------------------------------------------------------------------------

    def _check_dangers(self, topic: Topic) -> None:
        """Name the settings that would delete messages under the hold: at first, then each hour."""
        checked_ms, known = self._dangers.get(topic, (-_CHECK_MS, ()))
        if self._clock_ms() - checked_ms >= _CHECK_MS:
            found = dangers(self._admin, topic)
            for text in found:
                if text not in known:
                    self._say(f"{topic}: danger: {text}")
            self._dangers[topic] = self._clock_ms(), found
        found = self._dangers[topic][1]
        if found and self._config.offload.dangers == "refuse":
            raise ConfigurationError(
                f"not offloaded: {found[0]}", hint='offload.dangers = "warn" goes on all the same'
            )

    def _hold(self, topic: Topic) -> Mapping[Partition, PartitionLedgers]:
        name = self._config.offload.subscription
        partitions = self._admin.partitions(topic)
        new = [one for one in partitions if one not in self._held]
        hold.take(self._admin, new, name)
        self._held.update(new)
        listed = list_ledgers(self._admin, partitions)
        for partition in hold.missing(listed, name):
            self._claimed.discard(partition)
            self._say(
                f"{partition}: subscription {name} was gone; made again, messages may be lost"
            )
        return hold.verify(self._admin, listed, name)

    def _require_unclaimed(self, topic: Topic, partitions: Iterable[Partition]) -> None:
        uri = self._storage.table_uri(topic)
        for partition in partitions:
            hold.require_unclaimed(self._admin, partition, self._config.offload.subscription, uri)

    def _hold_again(
        self, listed: Mapping[Partition, PartitionLedgers], table: TopicTable | None
    ) -> Mapping[Partition, PartitionLedgers]:
        """Move holds back that something else has moved ahead; ``listed`` after that."""
        name = self._config.offload.subscription
        strayed = hold.strayed(listed, table, name)
        if not strayed:
            return listed
        for one in strayed:
            uri = self._storage.table_uri(one.partition.topic)
            hold.require_own(self._admin, one.partition, name, uri)
            self._say(
                f"{one.partition}: something has moved subscription {name} to {one.before}, ahead "
                f"of what is in the table: moved back to {one.after}; look for a TTL, a backlog "
                "quota, or who reset it"
            )
            self._admin.move_hold(one.partition, name, one.after)
        return {**listed, **list_ledgers(self._admin, [one.partition for one in strayed])}

    def _roll_over(
        self, topic: Topic, listed: Mapping[Partition, PartitionLedgers]
    ) -> Mapping[Partition, PartitionLedgers]:
        """Close the open ledgers that are older than ``rollover_after``; ``listed`` after that."""
        after = self._settings(topic).rollover_after
        if after is None:
            return listed
        opened = {one: opened_at(listing) for one, listing in listed.items()}
        before = self._clock_ms() - after.total_seconds() * 1000
        old = [one for one, at in opened.items() if at is not None and at <= before]
        for partition in old:
            self._say(f"{partition}: its open ledger is older than {after}: unloading it")
            self._admin.unload(partition)
        return {**listed, **list_ledgers(self._admin, old)} if old else listed

    def _look(
        self,
        topic: Topic,
        at_ms: int,
        listed: Mapping[Partition, PartitionLedgers],
        watermarks: Mapping[Partition, int],
        wait: float,
        notes: tuple[str, ...],
    ) -> Look:
        after = self._settings(topic).rollover_after
        found = [backlog(listing, watermarks[one]) for one, listing in listed.items()]
        closed = [one.oldest_ms for one in found if one.oldest_ms is not None]
        opened = [at for one in listed.values() if (at := opened_at(one)) is not None]
        return Look(
            at=at_ms / 1000,
            sealed={one.partition.full_name: one.sealed for one in found},
            unsealed={one.partition.full_name: one.unsealed for one in found},
            oldest=min(closed) / 1000 if closed else None,
            let_go=self._clock_ms() / 1000 + wait if wait else None,
            roll_over=min(opened) / 1000 + after.total_seconds() if opened and after else None,
            ledgers=sum(one.ledgers for one in found),
            notes=notes,
        )

    def _due(
        self,
        topic: Topic,
        listed: Mapping[Partition, PartitionLedgers],
        watermarks: Mapping[Partition, int],
        now: bool,
    ) -> list[Due]:
        settings = self._settings(topic)
        clock_ms = self._clock_ms()
        found = (
            due(listing, watermarks[one], clock_ms=clock_ms, config=settings, now=now)
            for one, listing in listed.items()
        )
        return [one for one in found if one is not None]

    # -- convert -------------------------------------------------------------------------------

    def _convert(
        self,
        topic: Topic,
        table: TopicTable | None,
        listed: Mapping[Partition, PartitionLedgers],
        dues: Sequence[Due],
        gaps: Sequence[Gap],
        wish: _Wish,
    ) -> Addition:
        settings = self._settings(topic)
        with self._timed("plan"):
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
        times = [time.monotonic()]

        def begun() -> None:  # once more where the job is tried again
            times.append(time.monotonic())
            self._took("wait", times[-1] - times[-2])
            self._say(_begin(topic, dues))

        work = Work(
            job=job,
            packs=plan_packs(splits, settings.split_bytes),
            urgency=wish.urgency,
            suspect=wish.suspect,
            begun=begun,
            progress=wish.progress,
        )
        converted = self.jobs.convert(work)
        self._took("convert", time.monotonic() - times[-1])
        files = [task.file for task in converted if task.file is not None]
        advances = []
        for one in dues:
            reach, late = self._pending(job, table, listed[one.partition], one, converted)
            waiting = filled_above(listed[one.partition], one.upto)
            advances.append(
                Advance(
                    one.partition,
                    one.watermark,
                    one.upto,
                    one.created_at,
                    reach,
                    waiting[0] if waiting else None,
                )
            )
            files += late
        return Addition(
            topic=topic,
            advances=tuple(advances),
            files=tuple(files),
            ledgers=due_ledgers(listed, dues, segments, files, gaps),
            fields=fields,
            source=settings.source,
            cluster=self._cluster,
            statistics=tuple(settings.statistics_columns),
            fresh_ms=fresh_ms(settings),
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
        timeout = self._settings(partition.topic).chunk_timeout
        timeout_ms = int(timeout.total_seconds() * 1000)
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
        settings = self._settings(topic)
        # What is let go was checked to be this topic's, and is in the log.
        for listing in listed.values():
            check_same_topic(newest, listing)
        moves = hold.moves(listed, newest, settings.subscription)
        if not moves:
            return (), 0.0
        table, wait = hold.settled(
            self._storage,
            newest,
            topic,
            clock_ms=self._clock_ms(),
            grace_ms=int(settings.grace.total_seconds() * 1000),
        )
        if table is None:
            return (), wait
        with self._timed("release"):
            for partition in {one.partition for one in moves} - self._claimed:
                hold.claim(self._admin, partition, settings.subscription, newest)
                self._claimed.add(partition)
            moved = hold.release(self._admin, listed, table, settings.subscription)
        return tuple(moved), wait

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        """Tells how long a stage took that went well."""
        began = time.monotonic()
        yield
        self._took(stage, time.monotonic() - began)


def _begin(topic: Topic, dues: Sequence[Due]) -> str:
    ledgers = sum(len(one.ledgers) for one in dues)
    size = size_text(sum(one.bytes for one in dues))
    return f"{topic}: offloading {ledgers} ledgers ({size}); {dues[0].reason}"
