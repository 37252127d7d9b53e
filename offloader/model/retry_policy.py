"""How often what failed is tried again, and after which pauses."""

from dataclasses import dataclass

BACK_OFF_MOST = 900.0
"""Seconds: the longest pause after a failure, unless the topic's interval is longer."""


@dataclass(frozen=True, slots=True)
class CommitRetries:
    """How often one commit is tried again before its caller gets an error.

    ``moved``: after another commit has moved the log, at once. ``unmoved``: in a row although the
    log has not moved, each after a pause that doubles: twice ``pause`` seconds at first.
    """

    moved: int = 20
    unmoved: int = 3
    pause: float = 0.2

    def pause_after(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row."""
        return self.pause * 2.0**failures


COMMIT_RETRIES = CommitRetries()
"""For appends and replacements alike."""


def back_off(times: int, interval: float, jitter: float) -> float:
    """Seconds until the next try after so many failures in a row; ``jitter``: 0 to 1.

    From the interval (at least a second) on, doubled each time, and then half of it at random.
    """
    first = max(interval, 1.0)
    longest = min(first * 2.0 ** min(times - 1, 60), max(first, BACK_OFF_MOST))
    return longest * (0.5 + 0.5 * jitter)
