"""Parquet.

file_names           Names of data files: ``p<partition>-<first ledger>-<uuid>.zstd.parquet
statistics           A file's statistics as the Delta log holds them: the zone map of its r
writer               Arrow batches to one Parquet file of a topic's table, in bounded memor
"""

__all__: list[str] = []
