"""The clocks that a process goes by, as one value: tests give others."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clocks:
    """This host's time, a monotonic clock, and a way to wait.

    ms: ms since the epoch, by this host's clock; it may be set at any time.
    elapsed: seconds of a monotonic clock, by which all pauses are counted.
    sleep: waits for seconds.
    """

    ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    elapsed: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def seconds(self) -> float:
        """Return this host's time in seconds since the epoch, for people."""
        return self.ms() / 1000


HOST_CLOCKS = Clocks()
"""The clocks of this host."""
