"""The time of a history: one true clock, which only the history moves, and the clocks of hosts."""

START_MS = 1_790_000_000_000


class Clock:
    """``now_ms``: ms since the epoch, the true time."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def advance(self, ms: int) -> None:
        """Let time go by; nobody waits."""
        self.now_ms += ms

    def sleep(self, seconds: float) -> None:
        """What a client does that waits."""
        self.now_ms += int(seconds * 1000) + 1


class HostClock:
    """The wall clock of a host, which is set from time to time.

    ``ahead_ms``: how far it is ahead of the true time now; ``farthest_ms``: the most that it was
    ahead or behind.
    """

    def __init__(self, true: Clock) -> None:
        self._true = true
        self._settings = [(true.now_ms, 0)]
        self.farthest_ms = 0

    @property
    def ahead_ms(self) -> int:
        return self._settings[-1][1]

    @property
    def now_ms(self) -> int:
        """Return what the clock shows now."""
        return self._true.now_ms + self.ahead_ms

    def seconds(self) -> float:
        """Return the same in seconds."""
        return self.now_ms / 1000

    def set_ahead(self, ms: int) -> None:
        """Set the clock."""
        self._settings.append((self._true.now_ms, ms))
        self.farthest_ms = max(self.farthest_ms, abs(ms))

    @property
    def latest_ms(self) -> int:
        """Return the latest time that the clock has shown."""
        ends = [at for at, _ in self._settings[1:]] + [self._true.now_ms]
        return max(end + ahead for (_, ahead), end in zip(self._settings, ends, strict=True))

    def least_since(self, true_ms: int) -> int:
        """Return the least that the clock has shown since a true time."""
        found = self.now_ms
        ends = [at for at, _ in self._settings[1:]] + [self._true.now_ms]
        for (at, ahead), end in zip(self._settings, ends, strict=True):
            if end >= true_ms:
                found = min(found, max(at, true_ms) + ahead)
        return found
