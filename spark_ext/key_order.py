"""Messages of one key in one task, in order: what a Key_Shared subscription gives."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col

_ORDER = ("__topic", "__partition", "__ledgerId", "__entryId", "__batchIndex")


def by_key(rows: DataFrame, tasks: int) -> DataFrame:
    """The rows in so many tasks, which may be more or fewer than the topic has partitions.

    All messages of one key are in one task, in the order in which their partition has them. As for
    Pulsar's Key_Shared, a message's ordering key comes before its key; those without any are in one
    task. ``rows`` has the columns ``__key``, ``__orderingKey`` and those of the position. Of a
    stream, call it in ``foreachBatch``: micro-batches follow each other, so each key's order is
    kept. Raises ValueError for a streaming DataFrame, which Spark does not sort, and for missing
    columns.
    """
    if rows.isStreaming:
        raise ValueError(
            "Spark sorts no streaming DataFrame: call by_key in foreachBatch, with its DataFrame"
        )
    missing = [name for name in ("__key", "__orderingKey", *_ORDER) if name not in rows.columns]
    if missing:
        raise ValueError(f"by_key needs the columns {', '.join(missing)}: select them, too")
    key = coalesce("__orderingKey", col("__key").cast("binary"))
    return rows.repartition(tasks, key).sortWithinPartitions(*_ORDER)
