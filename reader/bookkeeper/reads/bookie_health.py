"""BookieHealth: which bookies failed or were slow recently, and which one is asked next.

A bookie that failed is avoided for a while, for longer if it has not answered since the last
failure. A bookie that does not support range reads gets only entry reads, for a longer while. A
bookie that is slow, compared with the other bookies, is asked last for a while, or until it answers
in time.

A client's knowledge ends with the client, which is closed when a read fails. So that not each read
waits anew for a bookie that is silent, the clients of a process share ``SilentBookies``.
"""

from collections.abc import Iterable

from reader.bookkeeper.reads.silent_bookies import SilentBookies

_AVOID_SECONDS = 30.0
_LONGEST_AVOID_SECONDS = 120.0
_WITHOUT_RANGES_SECONDS = 600.0  # not forever: bookies are upgraded
# A bookie is slow after so many times what the quickest other bookie needs, and so many seconds.
_SLOW_TIMES = 5
SLOW_SECONDS = 0.25


class BookieHealth:
    """What a client has learned about its bookies. ``timeout``: seconds a bookie may be silent.

    Times are those of the last ``advance``, in seconds.
    """

    def __init__(self, timeout: float, silent: SilentBookies) -> None:
        self.timeout = timeout
        self._silent = silent
        self._client = object()
        self._now = 0.0
        self._avoid_until: dict[str, float] = {}
        self._failed_at: dict[str, float] = {}
        self._reasons: dict[str, str] = {}
        self._failures: dict[str, int] = {}  # periods of avoidance since the last answer
        self._without_ranges_until: dict[str, float] = {}
        self._paces: dict[str, float] = {}  # mean seconds until an answer
        self._slow_after: dict[str, float] = {}  # by these paces
        self._slow: dict[str, tuple[float, float]] = {}  # (until when, how late it was)

    def advance(self, now: float) -> None:
        """Set the time."""
        self._now = now

    # -- failures --------------------------------------------------------------------------------

    def record_request(self, bookie: str) -> None:
        """Record that a bookie is asked."""
        self._silent.record_request(bookie, self._client, self.timeout, self._now)

    def record_failure(self, bookie: str, reason: str, *, silent: bool = False) -> None:
        """Avoid a bookie for a while. ``silent``: it did not answer in time."""
        self._reasons[bookie] = reason
        self._slow.pop(bookie, None)
        if self.is_available(bookie) or bookie not in self._failures:
            self._failures[bookie] = self._failures.get(bookie, 0) + 1
        avoided = min(_AVOID_SECONDS * 2 ** (self._failures[bookie] - 1), _LONGEST_AVOID_SECONDS)
        self._failed_at[bookie] = self._now
        self._avoid_until[bookie] = self._now + avoided
        if silent:
            self._silent.record_silence(bookie, self._client, reason, self._now)
        else:  # it refuses at once
            self._silent.record_answer(bookie)

    def reason(self, bookie: str) -> str:
        """Return the reason for a bookie's last failure: a line that names the bookie."""
        silence = self._silent.reason(bookie, self._now)
        return silence or self._reasons.get(bookie, f"bookie {bookie} failed")

    def avoid_range_reads(self, bookie: str) -> None:
        """Use only entry reads for 10 minutes: the bookie does not support range reads."""
        self._without_ranges_until[bookie] = self._now + _WITHOUT_RANGES_SECONDS

    # -- choices ---------------------------------------------------------------------------------

    def choose(self, replicas: Iterable[str]) -> str | None:
        """Return the first replica that is healthy, or else available.

        If all replicas failed recently, return the one that failed longest ago. Return None if no
        replica may be asked.
        """
        candidates = list(filter(self.can_ask, replicas))
        return next(filter(self.is_healthy, candidates), None) or next(
            filter(self.is_available, candidates),
            min(candidates, key=lambda bookie: self._failed_at.get(bookie, 0.0), default=None),
        )

    def choose_for_ranges(self, replicas: Iterable[str]) -> str | None:
        """Return the first replica for range reads that is healthy, or else available, or None."""
        candidates = [
            bookie
            for bookie in replicas
            if self._without_ranges_until.get(bookie, 0.0) <= self._now
        ]
        return next(filter(self.is_healthy, candidates), None) or next(
            filter(self.is_available, candidates), None
        )

    def is_healthy(self, bookie: str) -> bool:
        """Return whether a bookie is available and not slow."""
        if bookie in self._slow:
            until, waited = self._slow[bookie]
            if until > self._now and waited >= self.slow_after(bookie):
                return False
        return self.is_available(bookie)

    def is_available(self, bookie: str) -> bool:
        """Return whether a bookie may be asked and has not failed recently."""
        return self._avoid_until.get(bookie, 0.0) <= self._now and self.can_ask(bookie)

    def can_ask(self, bookie: str) -> bool:
        """Return whether a bookie is not silent for another client, or it is time to ask again."""
        return self._silent.allows(bookie, self._client, self._now)

    # -- slow bookies ----------------------------------------------------------------------------

    def record_answer(self, bookie: str, seconds: float) -> None:
        """Record an answer. ``seconds``: how long the oldest outstanding request had waited."""
        self._failures.pop(bookie, None)
        self._silent.record_answer(bookie)
        pace = self._paces.get(bookie, seconds)
        self._paces[bookie] = pace + (seconds - pace) / 4
        self._slow_after.clear()
        if bookie in self._slow and seconds < self.slow_after(bookie):
            del self._slow[bookie]

    def slow_after(self, bookie: str) -> float:
        """Return the seconds after which a bookie is slow, by what the other bookies need."""
        after = self._slow_after.get(bookie)
        if after is None:
            others = [pace for other, pace in self._paces.items() if other != bookie]
            usual = _SLOW_TIMES * min(others, default=0.0)
            after = self._slow_after[bookie] = min(self.timeout / 2, max(SLOW_SECONDS, usual))
        return after

    def check_slow(self, bookie: str, seconds: float) -> bool:
        """Record and return whether a bookie is slow, which has not answered for ``seconds``."""
        if seconds < self.slow_after(bookie):
            return False
        # The pace from before the bookie got stuck is no measure for other bookies.
        self._paces[bookie] = max(self._paces.get(bookie, 0.0), seconds)
        self._slow_after.clear()
        self._slow[bookie] = (self._now + _AVOID_SECONDS, seconds)
        return True
