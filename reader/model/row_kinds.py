"""What a row of a topic's table is: the values of the column ``__kind``.

Stored values (``docs/columns.md``): queries, streams and maintenance select rows by them.
"""

from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

KIND_COLUMN = "__kind"


class RowKind(StrEnum):
    """A row's kind. ``__error`` says in words why a row is not a whole message."""

    MESSAGE = "message"
    """A message. Its columns lack a part of it if ``__error`` is set, and ``__rescued`` has all."""
    UNDECODABLE = "undecodable"
    """An entry or a payload that cannot be decoded: its payload columns are NULL."""
    ENCRYPTED = "encrypted"
    """An encrypted entry that no key has opened, with all of its messages."""
    INCOMPLETE = "incomplete"
    """Chunks of a message that was given up: its remaining chunks never came."""
    UNMATCHED = "unmatched"
    """A chunk that continues no message, with the chunks that were there before it."""
    DAMAGED = "damaged"
    """An entry of which no good copy is left."""


KIND_RANKS = {kind.value: rank for rank, kind in enumerate(sorted(RowKind))}
"""The rank of each kind in the order of their texts, by which files are pruned."""


def is_kind(*kinds: RowKind) -> pc.Expression:
    """Return the filter for rows of one of these kinds. Statistics of files prune by it."""
    (first, *others) = (pc.field(KIND_COLUMN) == pa.scalar(kind.value) for kind in kinds)
    for other in others:
        first |= other
    return first


def is_not_kind(kind: RowKind) -> pc.Expression:
    """Return the filter for rows of any other kind, or of none (another program's rows)."""
    column = pc.field(KIND_COLUMN)
    return (column != pa.scalar(kind.value)) | column.is_null()
