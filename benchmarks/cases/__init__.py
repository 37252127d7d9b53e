"""The cases: what is measured, and on which data.

    reader           a topic to decoded Arrow in one process, against clients of the broker
    scan_arrow       to Arrow without Spark, against pyarrow.dataset; head and tail
    hot_queries      sealed hot segments: few columns, counts and extremes
    cold_queries     a wholly offloaded topic, against Spark's own Delta scan
    cold_path        a session's first cold query, and planning of many files
    first_answer     `pulsar-lake sql` from Enter to the answer, beside a plain PySpark script
    stream_backfill  streams of all there is: offloaded beside Delta's source, sealed beside a loop
    stream_batches   a warm small micro-batch beside Spark's rate source; from a receipt to the row
    inserts          INSERT beside a foreachPartition loop over pulsar-client, and staging's share
    offload          offloading, read to commit, against pyarrow alone; the table's size
    commit_cost      CPU of a commit, a ledger, a job and a row, each by itself
    day              these costs added up to a day of a large installation (pure)
    drain            a backlog of many topics, drained by the offloader beside the bookies
    iceberg_follow   an Iceberg table that follows commits of 10 files, against these commits

They run in the order of ``_MODULES``; a new case is a module here and a line there.
"""

from benchmarks.case import Case
from benchmarks.cases import (
    cold_path,
    cold_queries,
    commit_cost,
    drain,
    first_answer,
    hot_queries,
    iceberg_follow,
    inserts,
    offload,
    reader,
    scan_arrow,
    stream_backfill,
    stream_batches,
)

__all__ = ["CASES"]

_MODULES = (
    reader,
    offload,
    cold_queries,
    cold_path,
    hot_queries,
    scan_arrow,
    stream_backfill,
    stream_batches,
    inserts,
    drain,
    commit_cost,
    iceberg_follow,
    first_answer,
)

CASES: dict[str, Case] = {one.name: one for module in _MODULES for one in module.CASES}
