"""The Spark job that turns ledgers into files: Spark distributes, Arrow moves the data.

One job converts what the turns of several topics want (``Conversion``); small topics share its
tasks, too. Paths, sizes and statistics of the files come back.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from offloader.convert.conversion import (
    Conversion,
    ConversionOutcome,
    ConversionSpec,
    Pack,
    PackOutcome,
    pack_bytes,
)
from offloader.convert.job_progress import JobProgress
from offloader.convert.job_results import collect, keep_classes
from offloader.convert.job_rules import PACK_COST
from offloader.convert.jobs import ConversionJobs
from offloader.convert.pack_task import run_packs
from offloader.model import Workers
from spark_ext.session.errors import error_of

if TYPE_CHECKING:
    from pyspark import SparkContext

_ALONE_BYTES = 32 << 20


def spark_jobs(
    context: Callable[[], SparkContext], *, linger: float = 0.0
) -> ConversionJobs[SparkContext]:
    """Return jobs that run in Spark.

    context: starts Spark when it is first needed.
    linger: seconds that a small job waits for those of other turns.
    """
    return ConversionJobs(
        context, convert, linger=linger, cores=lambda spark: spark.defaultParallelism
    )


def convert(
    context: SparkContext, conversions: Sequence[Conversion], *, pool: str = ""
) -> list[ConversionOutcome]:
    """Run the conversions as one Spark job; what came of each, in their order.

    All of them are for the same ``Workers``. ``pool``: Spark's scheduler pool, where jobs run side
    by side. Raises what the whole job failed with, the tasks' own error if there is one, once Spark
    has given up retrying.
    """
    for conversion in conversions:
        conversion.begun()
    cores = context.defaultParallelism
    workers = conversions[0].workers
    limited = workers is not Workers.HEALTHY
    tasks = share_out(conversions, cores, most=workers.slots(cores) if limited else None)
    named = [str(one.spec.topic) for one in conversions]
    group = f"pulsar-lake-{uuid.uuid4().hex}"
    about = ", ".join(named[:3]) + (", …" if len(named) > 3 else "")
    context.setJobGroup(group, f"offload {about}: {len(tasks)} tasks", interruptOnCancel=True)
    context.setLocalProperty("spark.scheduler.pool", pool or None)  # type: ignore[arg-type]
    keep_classes(context)
    work = [[(*one, conversions[one[0]].spec) for one in task] for task in tasks]
    run_task = partial(_run_task, patience=conversions[0].patience)
    run = context.parallelize(work, len(work)).map(run_task)

    def progress(done: int, total: int) -> None:
        for conversion in conversions:
            conversion.progress(done, total)

    with JobProgress(context, group, len(tasks), progress):
        try:
            done = collect(run)
        except Exception as error:
            if (found := error_of(error)) is not None:
                raise found from error
            raise
    results = {(number, pack): result for task in done for number, pack, result in task}
    return [
        tuple(results[number, pack] for pack in range(len(conversion.packs)))
        for number, conversion in enumerate(conversions)
    ]


def _run_task(
    task: Sequence[tuple[int, int, Pack, ConversionSpec]], *, patience: float
) -> list[tuple[int, int, PackOutcome]]:
    outcomes = run_packs(((spec, splits) for *_, splits, spec in task), patience=patience)
    return [(one[0], one[1], outcome) for one, outcome in zip(task, outcomes, strict=True)]


def share_out(
    conversions: Sequence[Conversion], parallelism: int, *, most: int | None = None
) -> list[list[tuple[int, int, Pack]]]:
    """Spark's tasks. Large packs have one alone, small ones share; ``most``: all packs share so
    many tasks.

    A task has its packs in the order of the conversions, of which the first has waited longest:
    it may begin no more than one (``run_packs``).

    Of each pack: (its conversion's place in ``conversions``, its place in that, its splits).
    """
    packs = [
        (pack_bytes(splits), number, pack, splits)
        for number, conversion in enumerate(conversions)
        for pack, splits in enumerate(conversion.packs)
    ]
    # Few enough that starting them costs little, enough that all cores end together.
    bins: list[list[tuple[int, int, Pack]]] = [
        [] for _ in range(min(len(packs), most or 4 * parallelism))
    ]
    filled = [(0, number) for number in range(len(bins))]
    tasks = []
    for size, number, pack, splits in sorted(packs, key=lambda one: one[0], reverse=True):
        if size >= _ALONE_BYTES and most is None:
            tasks.append([(number, pack, splits)])
            continue
        load, chosen = filled[0]
        bins[chosen].append((number, pack, splits))
        heapq.heapreplace(filled, (load + size + PACK_COST, chosen))
    return tasks + [sorted(one, key=lambda item: item[:2]) for one in bins if one]
