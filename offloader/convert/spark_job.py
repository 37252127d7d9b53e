"""The Spark job that turns ledgers into files: Spark distributes, Arrow moves the data.

One job converts what the turns of several topics want (``Conversion``); small topics share its
tasks, too. Paths, sizes and statistics of the files come back.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from offloader import killpoint
from offloader.convert.conversion import (
    Conversion,
    ConversionOutcome,
    ConversionSpec,
    ConvertedPack,
    Pack,
)
from offloader.convert.job_progress import JobProgress
from offloader.convert.job_results import collect, keep_classes
from offloader.convert.pack_task import try_pack
from reader.errors import PulsarLakeError
from spark_ext.session.errors import error_of

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["convert", "share_out"]

_ALONE_BYTES = 32 << 20
_PACK_COST = 1 << 20  # what a pack costs besides its bytes, in bytes


def convert(
    context: SparkContext,
    conversions: Sequence[Conversion],
    *,
    pool: str = "",
    reached: Callable[[killpoint.Step], None] = killpoint.reached,
) -> list[ConversionOutcome]:
    """Run the conversions as one Spark job; what came of each, in their order.

    ``pool``: Spark's scheduler pool, where jobs run side by side. Raises what the whole job failed
    with, the tasks' own error if there is one, once Spark has given up retrying.
    """
    for conversion in conversions:
        conversion.begun()
    cores = context.defaultParallelism
    retries = conversions[0].suspect
    # A task that waits for a silent server occupies a core: the others are for healthy topics.
    tasks = share_out(conversions, cores, most=max(1, cores // 2) if retries else None)
    named = [str(one.spec.topic) for one in conversions]
    group = f"pulsar-lake-{uuid.uuid4().hex}"
    about = ", ".join(named[:3]) + (", …" if len(named) > 3 else "")
    context.setJobGroup(group, f"offload {about}: {len(tasks)} tasks", interruptOnCancel=True)
    context.setLocalProperty("spark.scheduler.pool", pool or None)  # type: ignore[arg-type]
    keep_classes(context)
    work = [[(*one, conversions[one[0]].spec) for one in task] for task in tasks]
    run = context.parallelize(work, len(work)).map(_run_task)

    def progress(done: int, total: int) -> None:
        for conversion in conversions:
            conversion.progress(done, total)

    with JobProgress(context, group, len(tasks), progress, reached):
        try:
            done = collect(run)
        except Exception as error:
            if (found := error_of(error)) is not None:
                raise found from error
            raise
    reached("files-written")
    results = {(number, pack): result for task in done for number, pack, result in task}
    return [
        _outcome([results[number, pack] for pack in range(len(conversion.packs))])
        for number, conversion in enumerate(conversions)
    ]


def _run_task(
    task: Sequence[tuple[int, int, Pack, ConversionSpec]],
) -> list[tuple[int, int, ConvertedPack | PulsarLakeError]]:
    return [(number, pack, try_pack(spec, splits)) for number, pack, splits, spec in task]


def share_out(
    conversions: Sequence[Conversion], parallelism: int, *, most: int | None = None
) -> list[list[tuple[int, int, Pack]]]:
    """Spark's tasks. Large packs have one alone, small ones share; ``most``: all packs share so
    many tasks.

    Of each pack: (its conversion's place in ``conversions``, its place in that, its splits).
    """
    packs = [
        (sum(split.bytes for split in splits), number, pack, splits)
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
        heapq.heapreplace(filled, (load + size + _PACK_COST, chosen))
    return tasks + [one for one in bins if one]


def _outcome(results: Sequence[ConvertedPack | PulsarLakeError]) -> ConversionOutcome:
    good = [one for one in results if isinstance(one, ConvertedPack)]
    bad = [one for one in results if isinstance(one, PulsarLakeError)]
    return bad[0] if bad else tuple(good)
