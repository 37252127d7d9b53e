"""The conversion of a turn: what is due, as files that one commit can add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from offloader.commit import max_file_age_ms
from offloader.config import OffloadConfig
from offloader.convert import (
    ChunkSequences,
    Conversion,
    ConversionJobs,
    ConversionSpec,
    ConvertedPack,
    Pack,
    begins_at,
    incomplete_at,
    lookback_of,
    plan_packs,
    unfinished_rows,
)
from offloader.convert.due_segments import due_ledgers, due_segments, due_splits
from offloader.model import Due, settings_of, size_text
from offloader.output import Addition, Advance, WrittenFile
from offloader.parquet import statistics_columns
from offloader.subscription import filled_above
from offloader.turn.chunk_timeouts import ChunkTimeouts
from offloader.turn.held_topic import HeldTopic, TurnOptions
from offloader.turn.left_incomplete import LeftIncomplete, LeftMemory
from offloader.turn.phase_timer import PhaseTimer
from reader.clients import Clients
from reader.decode import ChunkSequence, is_incomplete
from reader.errors import CorruptError, NotFoundError, UnavailableError
from reader.model import Partition, Position, Topic
from reader.model.columns import METADATA
from reader.plan import creation_times, known_schemas, last_closed, payload_columns
from reader.pulsar import PartitionLedgers
from reader.sources import RowFormat
from reader.table import TopicTable

if TYPE_CHECKING:
    from pyspark import SparkContext


class Converted(NamedTuple):
    """``addition``: what to commit; None where that is nothing. ``slow``: see ``Turn``."""

    addition: Addition | None
    slow: bool


class ConversionStep:
    """Thread-safe; each partition for one thread at a time. ``say`` is told what begins."""

    def __init__(
        self,
        clients: Clients,
        config: OffloadConfig,
        jobs: ConversionJobs[SparkContext],
        timeouts: ChunkTimeouts,
        *,
        say: Callable[[str], None],
        timer: PhaseTimer,
    ) -> None:
        self._clients = clients
        self._config = config
        self._jobs = jobs
        self._timeouts = timeouts
        self._say = say
        self._timer = timer
        self._left = LeftMemory()

    def convert(self, held: HeldTopic, dues: Sequence[Due], options: TurnOptions) -> Converted:
        """Write the files of ``dues``.

        Raises StoppedError if the offloader stops first, SlowError if it was given up because it
        is slow, and what the tasks failed with.
        """
        topic, table = held.topic, held.table
        settings = settings_of(self._config, topic)
        with self._timer.phase("plan"):
            # After the ledgers: each version that a listed message has is registered by now.
            schemas = known_schemas(table, self._clients.admin.schemas(topic))
            fields = payload_columns(table, schemas)
            segments = due_segments(
                self._clients.settings, self._config.source, table, held.listed, dues
            )
            splits = due_splits(segments, settings.split_bytes)
        columns = pa.schema([*fields, *METADATA])
        spec = ConversionSpec(
            self._clients.settings,
            topic,
            RowFormat(
                fields,
                schemas,
                columns,
                created=creation_times((one, held.listed[one].created_at) for one in held.listed),
            ).set_up(self._clients.settings.pulsar, topic),
            statistics_columns(columns, settings.statistics_columns),
        )
        packs = plan_packs(splits, settings.split_bytes)
        converted = self._run(spec, packs, dues, options)
        files = [task.file for task in converted if task.file is not None]
        advances = []
        for one in dues:
            advance, rescued = self._advance(spec, held, one, converted)
            if advance.forward:
                advances.append(advance)
                files += rescued
        slow = any(pack.slow for pack in converted)
        if not advances:
            return Converted(None, slow)
        addition = Addition(
            topic=topic,
            advances=tuple(advances),
            files=tuple(files),
            ledgers=due_ledgers(
                held.listed,
                dues,
                segments,
                files,
                held.lost,
                self._clients.settings.pulsar.lost_ledgers,
            ),
            fields=fields,
            schemas=schemas,
            source=settings.source,
            cluster=self._cluster,
            statistics=tuple(settings.statistics_columns),
            max_age_ms=max_file_age_ms(settings),
            partitions={one.index: held.listed[one].created_at for one in held.listed},
        )
        return Converted(addition, slow)

    @cached_property
    def _cluster(self) -> str:
        return self._clients.admin.cluster()

    def _run(
        self,
        spec: ConversionSpec,
        packs: tuple[Pack, ...],
        dues: Sequence[Due],
        options: TurnOptions,
    ) -> tuple[ConvertedPack, ...]:
        """What came of the packs; how long they waited for a Spark job, and how long it ran, is
        told.
        """
        timer = self._timer
        times = [timer.now()]

        def begun() -> None:
            times.append(timer.now())
            timer.took("wait", times[-1] - times[-2])
            self._say(_begin(spec.topic, dues))

        conversion = Conversion(
            spec=spec, packs=packs, workers=options.workers, begun=begun, progress=options.progress
        )
        converted = self._jobs.convert(conversion)
        timer.took("convert", timer.now() - times[-1])
        return converted

    def _advance(
        self, spec: ConversionSpec, held: HeldTopic, step: Due, converted: Sequence[ConvertedPack]
    ) -> tuple[Advance, list[WrittenFile]]:
        """(the partition's step, a file of the incomplete messages that it gives up)."""
        before = held.lookbacks()[step.partition]
        lookback, given_up, rescued = self._give_up(spec, held, step, before, converted)
        listing = held.listed[step.partition]
        waiting = filled_above(listing, step.upto)
        advance = Advance(
            partition=step.partition,
            before=step.watermark,
            upto=step.upto,
            created_at=step.created_at,
            lookback=lookback,
            expected=waiting[0] if waiting else None,
            open_ledger=listing.ledgers[-1].ledger_id if listing.ledgers and not waiting else None,
            added=listing.added,
            lookback_before=before,
            closed=last_closed(held.table, listing, step.upto),
            given_up=given_up,
            first=_first(held.table, listing),
        )
        return advance, rescued

    def _give_up(
        self,
        spec: ConversionSpec,
        held: HeldTopic,
        step: Due,
        before: Position | None,
        converted: Sequence[ConvertedPack],
    ) -> tuple[Position | None, Position | None, list[WrittenFile]]:
        """(where the first message begins that stays incomplete, where the last one does that is
        given up, a file of those, and of chunks that would be in no row).

        ``before``: where the first begins that the step's watermark leaves incomplete.
        """
        partition = step.partition
        sequences: dict[bytes, ChunkSequence] = {}
        if before is not None:
            self._say_lost(held, partition, before)
            sequences |= self._incomplete_at(held, step, before)
        for task in converted:
            for uuid, chunks in task.chunks.items() if task.partition == partition else ():
                if chunks:
                    sequences[uuid] = chunks
                else:
                    sequences.pop(uuid, None)  # it has ended
        waiting = {uuid: chunks for uuid, chunks in sequences.items() if is_incomplete(chunks)}
        given_up = self._given_up(held, step, waiting)
        left = {uuid: chunks for uuid, chunks in waiting.items() if uuid not in given_up}
        kept = LeftIncomplete(step.created_at, step.upto, left) if left else None
        self._left.put(partition, kept)
        lookback = lookback_of(left)
        ended = {u: chunks for u, chunks in sequences.items() if chunks and u not in waiting}
        if not given_up and not ended:
            return lookback, None, []
        if given_up:
            self._say(
                f"{partition}: {len(given_up)} chunked messages were never completed: given up"
            )
        rows = unfinished_rows(
            self._clients,
            partition,
            spec.rows,
            given_up=given_up,
            ended=ended,
            table=held.table,
            files=[one.file for one in converted if one.file and one.partition == partition],
            source=self._config.source,
        )
        writer = spec.writer(self._clients.storage)
        file = writer.write(partition.index, step.upto, rows)
        last = max(map(begins_at, given_up.values()), default=None)
        return lookback, last, [file] if file else []

    def _given_up(
        self, held: HeldTopic, step: Due, waiting: ChunkSequences
    ) -> Mapping[bytes, ChunkSequence]:
        timeout_ms = settings_of(self._config, step.partition.topic).chunk_timeout_ms
        listing = held.listed[step.partition]
        try:
            return self._timeouts.given_up(listing, step.upto, waiting, timeout_ms)
        except (UnavailableError, NotFoundError, CorruptError) as error:
            if step.upto == step.watermark:
                raise
            # What is converted is good. There will be a turn for this alone.
            self._say(f"{step.partition}: no message is given up: {error}")
            return {}

    def _incomplete_at(self, held: HeldTopic, step: Due, begin: Position) -> ChunkSequences:
        """The messages that are incomplete at the step's watermark: they begin at ``begin``."""
        left = self._left.get(step.partition)
        if left is not None and left.holds(step, begin, held.listed[step.partition]):
            return left.sequences
        return incomplete_at(
            self._clients, step.partition, step.watermark, begin, self._config.source
        )

    def _say_lost(self, held: HeldTopic, partition: Partition, begin: Position) -> None:
        """Tell operators of a message whose beginning was deleted, but not with its topic."""
        listing, table = held.listed[partition], held.table
        there = any(one.ledger_id == begin.ledger for one in listing.ledgers)
        if table and not there and table.created_at(partition) == listing.created_at:
            self._say(
                f"{partition}: ledger {begin.ledger} was deleted while a chunked message that "
                "begins there was not complete: what it had of it is lost"
            )


def _first(table: TopicTable | None, listing: PartitionLedgers) -> tuple[int, int] | None:
    """Return ``Advance.first`` if the table has no ledger of this managed ledger yet, else None."""
    partition = listing.partition
    if table is not None and table.numbers(partition).first is not None:
        created_at = table.created_at(partition)
        if not created_at or created_at == listing.created_at:
            return None
    return listing.ledgers[0].ledger_id, listing.missing


def _begin(topic: Topic, dues: Sequence[Due]) -> str:
    ledgers = sum(len(one.ledgers) for one in dues)
    if not ledgers:
        return f"{topic}: {dues[0].reason}"
    size = size_text(sum(one.bytes for one in dues))
    return f"{topic}: offloading {ledgers} ledgers ({size}); {dues[0].reason}"
