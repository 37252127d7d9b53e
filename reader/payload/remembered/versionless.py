"""The schema version of messages that name none.

Producers of plain bytes name none, and neither do batches of some old clients.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from reader.payload.column_types import BARE
from reader.payload.remembered.lives import SchemaLives
from reader.payload.remembered.origins import layout_of_fields

BYTES_NUMBER = -1
"""The number of the definition of plain bytes, where the registry has none."""


@dataclass(frozen=True, slots=True)
class AssumedVersion:
    """A message is read as one of ``version``, if it is not older than the version."""

    version: int


def without_version(
    lives: SchemaLives, fields: Iterable[pa.Field], assumed: int | None
) -> AssumedVersion | int | str:
    """Return how messages that name no version are read: by a version, by the number of a
    definition, or, as a text, why they are not.

    JSON and text are checked when they are decoded, and plain bytes are never wrong. Avro that is
    decoded by the wrong version gives wrong values: only if there has never been another version
    it is read, and only if it is wholly a value of that version. ``assumed``: what an operator
    says.
    """
    if assumed is not None:
        return AssumedVersion(assumed)
    newest = lives.newest
    if not newest:
        return BYTES_NUMBER
    for version, info in newest.items():
        if info.type in ("BYTES", "NONE"):
            return version
    if all(info.type in ("JSON", "STRING") for info in newest.values()):
        return max(newest)
    if any(member.name == BARE for member in layout_of_fields(fields).members):
        return BYTES_NUMBER
    if sum(1 for _ in lives.all()) == 1 and 0 in newest:
        return AssumedVersion(0)
    return "the message has no schema version"
