"""How far one topic's Iceberg table is, by what this process knows of both: pure."""

from offloader.model import IcebergLag


class IcebergProgress:
    """For one thread at a time. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._shown: int | None = None
        self._newest = -1
        self._since: float | None = None

    def committed(self, version: int, at: float) -> None:
        """The Delta table has got ``version``, ``at``."""
        self._newest = max(self._newest, version)
        if self._since is None and version > self.shown:
            self._since = at

    def followed(self, version: int) -> None:
        """Iceberg shows ``version``: an older one than before if the table was made again."""
        again = version < self.shown
        self._shown = version
        if again or version >= self._newest:
            self._newest, self._since = version, None

    @property
    def shown(self) -> int:
        """The version that Iceberg shows; -1: not known."""
        return -1 if self._shown is None else self._shown

    def lag(self, now: float) -> IcebergLag | None:
        """None where nothing is known of either."""
        if self._shown is None and self._since is None:
            return None
        behind = None if self._shown is None else self._newest - self._shown
        seconds = 0.0 if self._since is None else max(0.0, now - self._since)
        return IcebergLag(self._shown, behind, seconds)
