"""The end of a ledger, out of the BookKeeper metadata that an offloader stores beside its entries.

Ensembles and digest are of no use: BookKeeper's copy is deleted, and no digest is stored.
"""

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from reader.errors import CorruptError
from reader.wire.pulsar_pb2 import LedgerMetadataFormat


@dataclass(frozen=True, slots=True)
class LedgerEnd:
    """``last_entry``: its id; ``length``: bytes of all entries."""

    last_entry: int
    length: int


def parse_ledger_end(data: bytes) -> LedgerEnd:
    """Raises CorruptError for what is no metadata of a closed ledger with entries."""
    try:
        metadata = LedgerMetadataFormat.FromString(data)
    except DecodeError:
        message = "the ledger's metadata is not protobuf, or ends too early"
        raise CorruptError(message) from None
    last_entry, length = metadata.lastEntryId, metadata.length
    if last_entry < 0 or length < 0:
        raise CorruptError(f"the ledger's metadata says last entry {last_entry} and {length} bytes")
    return LedgerEnd(last_entry, length)
