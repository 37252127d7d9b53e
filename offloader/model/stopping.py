"""The end of the daemon, as whoever waits for it sees it."""

from reader.errors import PulsarLakeError


class StoppedError(PulsarLakeError):
    """The offloader stops; what was asked for has not begun, and is for the next run."""
