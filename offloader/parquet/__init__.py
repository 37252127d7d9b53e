"""Arrow batches to the Parquet files of a topic's table.

    encodings    which columns are written without a dictionary
    file_names   names of data files: unique for each attempt, and known again
    statistics   a file's statistics as the Delta log holds them: the zone map of its rows
    writer       one file, in bounded memory

Nothing here knows of ledgers' bytes or commits. Imports ``output`` and
``reader``.
"""

from offloader.parquet.file_names import is_data_file
from offloader.parquet.statistics import PLAIN_NAME, statistics_columns
from offloader.parquet.writer import ParquetWriter

__all__ = ["PLAIN_NAME", "ParquetWriter", "is_data_file", "statistics_columns"]
