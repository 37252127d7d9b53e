"""The error tree: one class for each thing that a caller does differently.

    PulsarLakeError
    ├── ConfigurationError    the user fixes it: a wrong key, a bad name, a missing permission
    │   └── UnknownBrokerError   a token would go to a host that the admin does not vouch for
    ├── UnavailableError      try again, or another replica, or another tier
    ├── NotFoundError         it is not there any more: a trimmed ledger is looked for in the table
    │   └── LedgerGoneError   another ledger than the one that is read, but needed for it
    ├── CorruptError          these bytes are never right: another replica, never the same again
    ├── UnsupportedError      this reader does not handle it: the broker tier, or a rescued row
    └── CommitConflictError   another writer committed first: plan again

Foreign errors are translated at the border, with ``raise … from``.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

from reader.printable import printable


class PulsarLakeError(Exception):
    """Root of the tree.

    ``message`` is one line that names what failed; ``hint`` is what the user can do about it.
    ``context``: where it happened, by name (a topic, a ledger), for programs; not in the text.
    Picklable, because it crosses Spark's Python workers.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, context: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context: Mapping[str, object] = dict(context or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.context)

    def __str__(self) -> str:
        """For people: what it quotes cannot steer their terminal."""
        return printable(f"{self.message} ({self.hint})" if self.hint else self.message)


def _rebuild(
    cls: type[PulsarLakeError], message: str, hint: str | None, context: Mapping[str, object]
) -> PulsarLakeError:
    return cls(message, hint=hint, context=context)


class ConfigurationError(PulsarLakeError):
    """What the user asked for cannot be: only the user can put it right."""


class UnknownBrokerError(ConfigurationError):
    """A host that the admin redirects to, and does not have as a broker: it gets no token."""


class UnavailableError(PulsarLakeError):
    """A server did not answer, or not in time. Another replica, tier or time may."""


class NotFoundError(PulsarLakeError):
    """The thing does not exist, or no longer: unknown topic, trimmed ledger."""


class LedgerGoneError(NotFoundError):
    """A ledger has been trimmed in which a message begins that ends in a later one."""


class CorruptError(PulsarLakeError):
    """Bytes that fail their digest or their format."""


class UnsupportedError(PulsarLakeError):
    """Well-formed, but not handled by this reader."""


class CommitConflictError(PulsarLakeError):
    """Another writer moved the table since the plan was made."""


_DECORATION = re.compile(r"\x1b\[[0-9;]*m|↳")


def debugging() -> bool:
    """Whether who runs this wants to see where in the code an error came from."""
    return os.environ.get("PULSAR_LAKE_DEBUG", "") not in ("", "0")


def plain_text(error: object) -> str:
    """A foreign error as one line, without the colours and arrows that delta-rs adds."""
    return " ".join(_DECORATION.sub(" ", str(error)).split())[:300]
