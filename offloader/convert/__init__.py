"""From sealed ledgers to Parquet files: Spark distributes, Arrow moves the data.

    conversion         what a topic's turn wants converted, and what comes of it: values
    due_segments       what is due: as segments and splits to read, as ledgers that a commit lists
    jobs               conversions of many topics as few Spark jobs, and the workers that run them
    job_rules          which packs go into the next job, and how long each may take
    spark_context      the offloader's Spark, started with the first job
    spark_job          one job: its tasks, and what came of each conversion
    job_progress       how far a job is, told while it runs
    job_results        its results, with little work for Spark's JVM
    pack_task          what runs in a task: packs of splits, each to one file
    worker_daemon      what Spark forks the tasks' Python processes from
    stored_entries     a partition's entries, from the bookies or through the broker
    incomplete_chunks  chunked messages that a commit leaves incomplete
    chunk_rows         rows of those that it gives up, and of chunks that would be in no row

Nothing here commits, or knows of the hold. Imports ``parquet``, ``output``, ``config``,
``model``, ``spark_ext`` and ``reader``; pyspark is needed only where a job runs.
"""

from offloader.convert.chunk_rows import unfinished_rows
from offloader.convert.conversion import (
    Conversion,
    ConversionSpec,
    ConvertedPack,
    Pack,
    SlowError,
    plan_packs,
)
from offloader.convert.incomplete_chunks import (
    ChunkSequences,
    begins_at,
    incomplete_at,
    look_ahead,
    lookback_of,
)
from offloader.convert.jobs import ConversionJobs
from offloader.convert.spark_context import SparkStarter
from offloader.convert.spark_job import spark_jobs
from offloader.convert.stored_entries import Source

__all__ = [
    "ChunkSequences",
    "Conversion",
    "ConversionJobs",
    "ConversionSpec",
    "ConvertedPack",
    "Pack",
    "SlowError",
    "Source",
    "SparkStarter",
    "begins_at",
    "incomplete_at",
    "look_ahead",
    "lookback_of",
    "plan_packs",
    "spark_jobs",
    "unfinished_rows",
]
