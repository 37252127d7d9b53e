"""For how long this process has known the versions of a topic's table, by a monotonic clock."""

from collections.abc import Callable


class KnownVersions:
    """The versions of the table ``table_id``. ``elapsed``: seconds of a monotonic clock."""

    def __init__(self, table_id: str, elapsed: Callable[[], float]) -> None:
        self.table_id = table_id
        self._elapsed = elapsed
        self._seen: list[tuple[int, float]] = []  # versions and times, both ascending

    def note(self, version: int) -> None:
        """Note that the table has the version now."""
        while self._seen and self._seen[-1][0] > version:
            self._seen.pop()  # the table is an old copy of itself
        if not self._seen or self._seen[-1][0] < version:
            self._seen.append((version, self._elapsed()))

    def age_ms(self, version: int) -> int:
        """Return for how long the version has been known. A later version shows it, too."""
        at = next((at for seen, at in self._seen if seen >= version), None)
        return 0 if at is None else int((self._elapsed() - at) * 1000)

    def forget_before(self, version: int) -> None:
        """Forget the versions before one that is settled."""
        self._seen = [one for one in self._seen if one[0] >= version]
