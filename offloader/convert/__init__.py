"""Convert.

conversion           The Spark job that turns ledgers into files: Spark distributes, Arrow
incomplete_chunks    Chunked messages that a commit leaves incomplete: what is known of the
jobs                 Conversions of many topics as few Spark jobs: what waits when a job st
work                 What is due, as segments and splits to read, and as the ledgers that a
"""

__all__: list[str] = []
