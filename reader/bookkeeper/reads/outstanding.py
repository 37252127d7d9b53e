"""OutstandingRequests: the requests that bookies have not answered, and since when."""

from collections import deque

_PROGRESS_BYTES = 1 << 14
"""The bytes of incomplete answers after which a bookie does not count as silent."""


class _OfBookie:
    __slots__ = ("count", "since", "times", "total", "unfinished_bytes")

    def __init__(self) -> None:
        self.count = 0
        self.since = 0.0  # the last answer, much of an answer, or the first outstanding request
        self.unfinished_bytes = 0
        self.total = 0  # requests so far
        self.times: deque[tuple[int, float]] = deque()  # (total then, when)


class OutstandingRequests:
    """The requests of one kind without an answer, by bookie. Times are in seconds."""

    def __init__(self) -> None:
        self._bookies: dict[str, _OfBookie] = {}
        self._heard: set[str] = set()

    def bookies(self) -> list[str]:
        """Return the bookies with outstanding requests."""
        return [name for name, requests in self._bookies.items() if requests.count]

    def count(self, bookie: str) -> int:
        """Return the number of a bookie's outstanding requests."""
        requests = self._bookies.get(bookie)
        return requests.count if requests else 0

    def add(self, bookie: str, count: int, now: float) -> None:
        """Record requests that are sent."""
        requests = self._bookies.setdefault(bookie, _OfBookie())
        if not requests.count:
            requests.since = now
        requests.count += count
        requests.total += count
        requests.times.append((requests.total, now))

    def answer(self, bookie: str, count: int, now: float) -> None:
        """Record answers."""
        requests = self._bookies[bookie]
        requests.count -= count
        requests.since = now
        answered = requests.total - requests.count
        while requests.times and requests.times[0][0] <= answered:
            requests.times.popleft()

    def add_bytes(self, bookie: str, count: int, now: float) -> None:
        """Record bytes that arrived. Enough of them show that the bookie is not silent."""
        requests = self._bookies.get(bookie)
        self._heard.add(bookie)
        if requests is not None:
            requests.unfinished_bytes += count
            if requests.unfinished_bytes >= _PROGRESS_BYTES:
                requests.unfinished_bytes, requests.since = 0, now

    def forget(self, bookie: str) -> None:
        """Forget all requests to a bookie: its connection is closed."""
        self._bookies.pop(bookie, None)

    def oldest_seconds(self, bookie: str, now: float) -> float:
        """Return the time since the oldest outstanding request, if answers arrive in order."""
        requests = self._bookies.get(bookie)
        return now - requests.times[0][1] if requests and requests.count else 0.0

    def ages(self, now: float) -> list[tuple[str, float, float]]:
        """Return (bookie, seconds of silence, seconds since the oldest request) for all bookies.

        The silence begins with an answer, much of an answer, or the first outstanding request.
        """
        return [
            (name, now - one.since, now - one.times[0][1])
            for name, one in self._bookies.items()
            if one.count
        ]

    def start_wait(self) -> None:
        """Forget which bookies have sent bytes."""
        self._heard.clear()

    def is_heard(self, bookie: str) -> bool:
        """Return whether a bookie has sent bytes since ``start_wait``."""
        return bookie in self._heard
