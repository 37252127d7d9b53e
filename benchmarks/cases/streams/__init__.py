"""Cases of Structured Streaming.

backfill  all that there is, offloaded beside Delta's own source, sealed beside a client's loop
batches   a warm small micro-batch beside Spark's rate source, and from a receipt to the row
idle      what a stream costs where nothing comes
"""

from __future__ import annotations

__all__: list[str] = []
