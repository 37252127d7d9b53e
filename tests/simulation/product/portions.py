"""Rows of a block in several portions, any of which may turn out to be unsupported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from reader.decode import Messages
from reader.errors import UnsupportedError
from reader.sources.rows import RowBuilder
from testbed.simulation import Effects, FailureError

__all__ = ["small_portions"]

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
        patch("reader.stream.entry_sizes.BATCH_ROWS", _ROWS),
    ):
        yield
