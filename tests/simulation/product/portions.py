"""Small portions: rows of a block, any of which may be unsupported, and what a write stages."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from reader.decode import Messages
from reader.errors import UnsupportedError
from reader.sources.rows import RowBuilder
from testbed.simulation import Effects, FailureError

_ROWS = 2


@contextmanager
def small_portions(effects: Effects) -> Iterator[None]:
    """While the block runs, a few rows are a portion, and each is an effect."""

    class SimulatedBuilder(RowBuilder):
        def build(self, messages: Messages, opened_at: Mapping[int, int] | None = None) -> Any:
            try:
                with effects.effect("rows"):
                    return super().build(messages, opened_at)
            except FailureError as error:
                raise UnsupportedError("simulated") from error

    with (
        patch("reader.sources.entry_rows.RowBuilder", SimulatedBuilder),
        patch("reader.decode.passes.portions.PORTION_ROWS", _ROWS),
        patch("reader.sources.parquet_files.BATCH_ROWS", _ROWS),
        patch("reader.table.topic_table.BATCH_ROWS", _ROWS),
    ):
        yield


@contextmanager
def small_writes() -> Iterator[None]:
    """While the block runs, a few rows are several files, runs and pieces of a send window."""
    sizes = {
        "reader.sink.staging.INLINE_BYTES": 150,
        "reader.sink.staging.HELD_BYTES": 250,
        "reader.sink.writes.MANIFEST_INLINE_BYTES": 200,
        "reader.sink.writes.RUN_BYTES": 150,
        "reader.pulsar.binary.producer.SEND_BYTES": 150,
        "reader.pulsar.binary.producer.WINDOW_ENTRIES": 4,
    }
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(patch(name, size))
        yield
