"""One object of a storage, as a listing tells it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredObject:
    """``size`` in bytes; ``written``: ms since the epoch, by the storage's clock."""

    path: str
    size: int
    written: int
