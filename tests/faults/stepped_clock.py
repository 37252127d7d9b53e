"""Runs ``pulsar-lake`` with a clock that a file sets: NTP's step, for one process alone.

    python -m tests.faults.stepped_clock FILE ARGUMENTS…

FILE has the seconds that the clock is ahead of the machine's; it may change at any time. The
answers of ``time.time`` and ``time.time_ns`` are stepped, before anything of the product is
imported. ``time.monotonic`` is not, as in reality. delta-rs, the JVM and Spark's Python workers
keep the machine's clock: their commits and files are as if another host had made them.
"""

import sys
import time
from pathlib import Path


def step_clock(file: Path) -> None:
    """Let the clock of this process follow ``file`` from now on."""
    real, real_ns = time.time, time.time_ns

    def ahead() -> float:
        try:
            return float(file.read_text() or 0)
        except (OSError, ValueError):  # it is being written
            return 0.0

    def stepped() -> float:
        return real() + ahead()

    def stepped_ns() -> int:
        return real_ns() + int(ahead() * 1_000_000_000)

    time.time, time.time_ns = stepped, stepped_ns


def main() -> None:
    file = Path(sys.argv[1])
    step_clock(file)
    sys.argv[1:] = sys.argv[2:]
    from offloader.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
