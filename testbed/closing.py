"""What is closed at the end of a ``with``, whatever happened in it."""

from typing import Self


class Closing:
    """A context manager that calls its ``close`` at the end."""

    def close(self) -> None:
        """Give up what is held; more than once does no harm."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
