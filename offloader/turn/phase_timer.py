"""How long the phases of a turn take (``offloader.model.turn.PHASES``)."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class PhaseTimer:
    """``took`` is told (phase, seconds) of each one that went well; ``now``: seconds, monotonic."""

    def __init__(
        self, took: Callable[[str, float], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.took = took
        self.now = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the block."""
        began = self.now()
        yield
        self.took(name, self.now() - began)
