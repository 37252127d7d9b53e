"""The base of what is closed at the end of a ``with``."""

from typing import Self


class Closing:
    """A context manager that calls its ``close`` at the end, with or without an error."""

    def close(self) -> None:
        """Release what is held. May be called more than once."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
