"""How long the stages of a turn take (``offloader.model.turn.STAGES``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["StageTimer"]


class StageTimer:
    """``took`` is told (stage, seconds) of each one that went well; ``now``: seconds, monotonic."""

    def __init__(
        self, took: Callable[[str, float], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.took = took
        self.now = now

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block."""
        began = self.now()
        yield
        self.took(name, self.now() - began)
