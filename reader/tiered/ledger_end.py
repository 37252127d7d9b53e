"""The end of a ledger, out of the BookKeeper metadata that an offloader stores beside its entries.

``LedgerMetadataFormat`` (BookKeeper's ``DataFormats.proto``): 3 length, 4 lastEntryId. Ensembles
and digest are of no use: BookKeeper's copy is deleted, and no digest is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from reader.errors import CorruptError
from reader.wire import Fields, signed

__all__ = ["LedgerEnd", "parse_ledger_end"]

_LENGTH, _LAST_ENTRY = 3, 4


@dataclass(frozen=True, slots=True)
class LedgerEnd:
    """``last_entry``: its id; ``length``: bytes of all entries."""

    last_entry: int
    length: int


def parse_ledger_end(data: bytes) -> LedgerEnd:
    """Raises CorruptError for what is no metadata of a closed ledger with entries."""
    found = Fields(data, "the ledger's metadata")
    last_entry, length = signed(found.number(_LAST_ENTRY, -1)), signed(found.number(_LENGTH, -1))
    if last_entry < 0 or length < 0:
        raise CorruptError(f"the ledger's metadata says last entry {last_entry} and {length} bytes")
    return LedgerEnd(last_entry, length)
