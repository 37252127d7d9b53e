"""Arrow batches to the Parquet files of a topic's table.

    file_names   names of data files: unique for each attempt, and known again
    statistics   a file's statistics as the Delta log holds them: the zone map of its rows
    writer       one file, in bounded memory

Nothing here knows of ledgers' bytes, topics or commits. Imports ``model`` and
``reader``.
"""

__all__: list[str] = []
