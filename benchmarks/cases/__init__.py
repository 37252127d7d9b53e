"""The cases: what is measured, and on which data.

    reading         to Arrow in one process: clients, small ledgers, stages, JSON's forms, counts
    offload         offloading, read to commit, against pyarrow writing the same Arrow data
    offload_memory  peak memory of an offload task, for ledgers of 64 MB to 2 GB
    cold_queries    a wholly offloaded topic, against Spark's own Delta scan
    hot_queries     sealed hot segments: few columns, counts and extremes
    time_range      one per cent of the time range, cold and hot
    scan_arrow      to Arrow without Spark, against pyarrow.dataset; head and tail
    table_size      the size of the table against the topic's in BookKeeper
    storages        offloading to a server of each kind of storage, against S3's
    planning        planning over a topic of 10,000 ledgers
    iceberg_follow  an Iceberg table that follows commits of 10 files, against these commits
    many_topics     thousands of topics: an idle round, and hundreds of small ones offloaded
    daily           a commit, a ledger, a day of them; a backlog drained
    sustained       an offloader beside producers on the same machine, for some minutes
    first           what who tries it waits for: new processes, first queries, planning
    streams         Structured Streaming: backfills, small batches, idle streams
    writing         rows to topics: producers, INSERT

They run in the order of ``_MODULES``; a new case is a module here and a line there.
"""

from __future__ import annotations

from benchmarks.case import Case
from benchmarks.cases import (
    cold_queries,
    hot_queries,
    iceberg_follow,
    many_topics,
    offload,
    offload_memory,
    planning,
    scan_arrow,
    storages,
    sustained,
    table_size,
    time_range,
)
from benchmarks.cases.daily import commit_cost, drain
from benchmarks.cases.first import cold_kernels, cold_path, first_answer
from benchmarks.cases.reading import (
    counts,
    json_forms,
    open_tails,
    reader,
    small_ledgers,
    stages,
    tiered,
)
from benchmarks.cases.streams import backfill, batches, idle
from benchmarks.cases.writing import inserts, producers

__all__ = ["CASES"]

_MODULES = (
    reader,
    tiered,
    small_ledgers,
    open_tails,
    stages,
    json_forms,
    counts,
    offload,
    storages,
    cold_queries,
    cold_path,
    hot_queries,
    time_range,
    scan_arrow,
    backfill,
    batches,
    idle,
    producers,
    inserts,
    table_size,
    planning,
    many_topics,
    drain,
    commit_cost,
    iceberg_follow,
    sustained,
    first_answer,
    cold_kernels,
    offload_memory,
)

CASES: dict[str, Case] = {one.name: one for module in _MODULES for one in module.CASES}
