"""``[query]``: how queries read."""

from pathlib import Path

from pydantic import Field

from reader.config.section import Duration, Section


class QueryConfig(Section):
    """How queries read.

    ``tail_entries``: open ledgers with at most so many entries are read through the broker, out of
    its cache; by default none, because the bookies are quicker (docs/decisions/0005).
    ``clock_skew``: if set, time ranges also prune hot segments by ledger close times with this
    allowance for producers' clocks; unset, pruning is exact. ``compaction_retain_null_key``:
    whether the compacted view has messages without a key; unset, the broker is asked.
    ``allow_data_loss``: read topics of which messages were deleted before they were offloaded;
    without it, that is an error.
    ``learn_publish_times``: keep the publish times that complete reads of sealed ledgers have
    seen, in ``cache_dir``.
    """

    tail_entries: int = Field(default=0, ge=0)
    clock_skew: Duration | None = None
    compaction_retain_null_key: bool | None = None
    allow_data_loss: bool = False
    learn_publish_times: bool = True
    cache_dir: Path | None = None
