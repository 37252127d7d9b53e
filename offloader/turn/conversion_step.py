"""The conversion of a turn: what is due, as files that one commit can add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from offloader.commit import Addition, Advance, max_file_age_ms
from offloader.config import OffloadConfig
from offloader.convert import (
    Conversion,
    ConversionJobs,
    ConversionSpec,
    ConvertedPack,
    Pack,
    given_up_rows,
    incomplete_at,
    lookback_of,
    plan_packs,
    split_by_age,
    write_rows,
)
from offloader.convert.due_segments import due_ledgers, due_segments, due_splits
from offloader.model import Due, WrittenFile, settings_of, size_text
from offloader.parquet import statistics_columns
from offloader.subscription import filled_above
from offloader.turn.held_topic import HeldTopic, TurnOptions
from offloader.turn.phase_timer import PhaseTimer
from reader.clients import Clients
from reader.decode import ChunkSequence, is_incomplete
from reader.model import Position, Topic
from reader.model.columns import METADATA
from reader.plan import payload_columns
from reader.sources import RowFormat

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["ConversionStep"]


class ConversionStep:
    """Thread-safe. ``clock_ms``: ms since the epoch; ``say`` is told what begins."""

    def __init__(
        self,
        clients: Clients,
        config: OffloadConfig,
        jobs: ConversionJobs[SparkContext],
        *,
        clock_ms: Callable[[], int],
        say: Callable[[str], None],
        timer: PhaseTimer,
    ) -> None:
        self._clients = clients
        self._config = config
        self._jobs = jobs
        self._clock_ms = clock_ms
        self._say = say
        self._timer = timer

    def convert(self, held: HeldTopic, dues: Sequence[Due], options: TurnOptions) -> Addition:
        """Write the files of ``dues``; what to commit.

        Raises StoppedError if it was stopped before it began, and what the tasks failed with.
        """
        topic, table = held.topic, held.table
        settings = settings_of(self._config, topic)
        with self._timer.phase("plan"):
            # After the ledgers: each version that a listed message has is registered by now.
            schemas = self._clients.admin.schemas(topic)
            fields = payload_columns(table, schemas)
            segments = due_segments(
                self._clients.settings.query, self._config.source, table, held.listed, dues
            )
            splits = due_splits(segments, settings.split_bytes)
        columns = pa.schema([*fields, *METADATA])
        spec = ConversionSpec(
            self._clients.settings,
            topic,
            RowFormat(fields, schemas, columns),
            statistics_columns(columns, settings.statistics_columns),
        )
        packs = plan_packs(splits, settings.split_bytes)
        converted = self._run(spec, packs, dues, options)
        files = [task.file for task in converted if task.file is not None]
        advances = []
        for one in dues:
            advance, rescued = self._advance(spec, held, one, converted)
            advances.append(advance)
            files += rescued
        return Addition(
            topic=topic,
            advances=tuple(advances),
            files=tuple(files),
            ledgers=due_ledgers(held.listed, dues, segments, files, held.lost),
            fields=fields,
            source=settings.source,
            cluster=self._cluster,
            statistics=tuple(settings.statistics_columns),
            max_age_ms=max_file_age_ms(settings),
        )

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

        def begun() -> None:  # once more where the job is tried again
            times.append(timer.now())
            timer.took("wait", times[-1] - times[-2])
            self._say(_begin(spec.topic, dues))

        conversion = Conversion(
            spec=spec,
            packs=packs,
            urgency=options.urgency,
            suspect=options.suspect,
            begun=begun,
            progress=options.progress,
        )
        converted = self._jobs.convert(conversion)
        timer.took("convert", timer.now() - times[-1])
        return converted

    def _advance(
        self, spec: ConversionSpec, held: HeldTopic, step: Due, converted: Sequence[ConvertedPack]
    ) -> tuple[Advance, list[WrittenFile]]:
        """(the partition's step, a file of the incomplete messages that it gives up)."""
        lookback, rescued = self._give_up(spec, held, step, converted)
        waiting = filled_above(held.listed[step.partition], step.upto)
        advance = Advance(
            partition=step.partition,
            before=step.watermark,
            upto=step.upto,
            created_at=step.created_at,
            lookback=lookback,
            expected=waiting[0] if waiting else None,
        )
        return advance, rescued

    def _give_up(
        self, spec: ConversionSpec, held: HeldTopic, step: Due, converted: Sequence[ConvertedPack]
    ) -> tuple[Position | None, list[WrittenFile]]:
        """(where the first message begins that stays incomplete, a file of those given up)."""
        partition = step.partition
        sequences: dict[bytes, ChunkSequence] = {}
        before = held.table.lookback(partition) if held.table else None
        if before is not None:
            sequences |= incomplete_at(self._clients, partition, step.watermark, before)
        for task in converted:
            if task.partition == partition:
                sequences |= task.chunks
        waiting = {uuid: chunks for uuid, chunks in sequences.items() if is_incomplete(chunks)}
        timeout = settings_of(self._config, partition.topic).chunk_timeout
        timeout_ms = int(timeout.total_seconds() * 1000)
        old, young = split_by_age(waiting, (self._clock_ms() - timeout_ms) * 1000)
        if not old:
            return lookback_of(young), []
        self._say(f"{partition}: {len(old)} chunked messages were never completed: given up")
        rows = given_up_rows(self._clients, held.listed[partition], old, spec.rows)
        file = write_rows(self._clients.storage, spec, partition, step.upto, rows)
        return lookback_of(young), [file] if file else []


def _begin(topic: Topic, dues: Sequence[Due]) -> str:
    ledgers = sum(len(one.ledgers) for one in dues)
    size = size_text(sum(one.bytes for one in dues))
    return f"{topic}: offloading {ledgers} ledgers ({size}); {dues[0].reason}"
