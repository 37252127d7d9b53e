"""Files of a table's directory: what tasks write into them, and what vacuum finds unused."""

from dataclasses import dataclass, field

LEAST_MAX_AGE_MS = 12 * 3_600_000
"""Half of the least ``offload.vacuum_after``: a file of that age may always be committed."""


@dataclass(frozen=True, slots=True)
class LedgerRows:
    """How many rows of one ledger a file holds, and the publish times (µs; None: no rows).

    ``ciphertexts``: how many of them are encrypted entries. ``rescued``: how many have an
    ``__error``; those are among them.
    """

    ledger: int
    rows: int
    min_publish_time: int | None
    max_publish_time: int | None
    ciphertexts: int = 0
    rescued: int = 0


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One closed file of the table's directory, not yet in its log.

    ``path`` is relative to the table; ``statistics`` is the add action's JSON; ``schema`` is the
    file's own Arrow schema, serialised; ``modified`` ms since the epoch.
    """

    path: str
    size: int
    modified: int
    rows: int
    statistics: str
    schema: bytes = field(repr=False)
    ledgers: tuple[LedgerRows, ...]

    @property
    def ciphertexts(self) -> int:
        """How many rows are encrypted entries."""
        return sum(one.ciphertexts for one in self.ledgers)

    @property
    def rescued(self) -> int:
        """How many rows have an ``__error``."""
        return sum(one.rescued for one in self.ledgers)


@dataclass(frozen=True, slots=True)
class UnusedFile:
    """A file that no version needs; ``path`` as the log would name it, ``size`` in bytes."""

    path: str
    size: int
