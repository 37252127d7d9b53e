"""Servers that are away for a while: each request is refused at once, or waits for its timeout."""

from testbed.simulation.clock import Clock

BOOKIES = 3
"""Ledgers lie on one bookie each, by their ids."""

SERVERS = ("admin", "broker", "storage", *(f"bookie-{number}" for number in range(BOOKIES)))

TIMEOUT_MS = 10_000
"""How long a client waits for a server that is silent."""


def bookie_of(ledger_id: int) -> str:
    """Return the server that has the entries of a ledger."""
    return f"bookie-{ledger_id % BOOKIES}"


class Outages:
    """Which servers are away, by the true clock; ``met``: those that were asked meanwhile."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, tuple[int, bool]] = {}
        self.met: set[str] = set()

    def begin(self, server: str, ms: int, *, silent: bool) -> None:
        """Take a server away for so long."""
        self._until[server] = self._clock.now_ms + ms, silent

    def end_all(self) -> None:
        """Bring all servers back."""
        self._until.clear()

    def is_away(self, server: str) -> bool:
        """Return whether a request to the server fails now. Wait for that if it is silent."""
        until, silent = self._until.get(server, (0, False))
        if self._clock.now_ms >= until:
            return False
        if silent:
            self._clock.advance(TIMEOUT_MS)
        self.met.add(server)
        return True
