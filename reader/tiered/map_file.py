"""A ledger of the filesystem driver: a Hadoop MapFile, which is two SequenceFiles.

``data`` has the ledger's metadata under the key -1, and then its entries by their ids. ``index``
has for some of the keys where a read of ``data`` may begin: at the key's record or, where records
are compressed in blocks, at the block that has it.
"""

from dataclasses import dataclass

import numpy as np

from reader.errors import CorruptError, UnsupportedError
from reader.kernels.array_types import Int64s
from reader.tiered.ledger_end import LedgerEnd, parse_ledger_end
from reader.tiered.sequence_file import BYTES, Compression, Header, long_pairs, parse_header
from reader.tiered.sequence_walk import sequence_walk
from reader.tiered.walk import Walk, next_of

METADATA_KEY = -1


@dataclass(frozen=True, slots=True)
class MapFile:
    """``data_length``: bytes of ``data``; ``keys``, ``places``: of ``index``, ascending."""

    header: Header
    data_length: int
    end: LedgerEnd
    keys: Int64s
    places: Int64s

    def walk(self, first: int, last: int, begin: tuple[int, int] | None = None) -> Walk:
        """``begin``: an entry up to ``first``, and the place that a read has learned of it."""
        at = int(np.searchsorted(self.keys, first, "right")) - 1
        entry, place = int(self.keys[at]), int(self.places[at])
        if begin is not None and begin[0] > entry:
            entry, place = begin
        blocks = self.header.compression is Compression.BLOCK
        # What follows the ledger's last entry is nothing, which a whole walk has to see.
        walk = sequence_walk(
            self.header, (None if blocks else entry, place), last, self.data_length
        )
        walk.begins_with = entry
        return walk

    def begin_after(self, entry: int) -> int | None:
        """The first entry behind ``entry`` that the index names; None: there is none."""
        return next_of(self.keys, entry)


def parse_data_header(data: bytes) -> Header:
    """Of ``data``. Raises as ``parse_header``."""
    header = parse_header(data)
    if header.value_class != BYTES:
        raise UnsupportedError(f"a SequenceFile of {header.value_class}")
    return header


def metadata_walk(header: Header, data_length: int) -> Walk:
    """Gives the ledger's metadata, as an entry, and whatever lies in its block."""
    return sequence_walk(header, (METADATA_KEY, header.size), METADATA_KEY, data_length)


def map_file(header: Header, data_length: int, metadata: bytes, index: bytes) -> MapFile:
    """Raises CorruptError where they contradict each other or themselves."""
    end = parse_ledger_end(metadata)
    pairs = np.array(list(long_pairs(index)), np.int64).reshape(-1, 2)
    keys, places = pairs[:, 0], pairs[:, 1]
    if not len(keys) or keys[0] != METADATA_KEY or places[0] != header.size:
        raise CorruptError("the index does not begin with the data's first record")
    if (np.diff(keys) <= 0).any() or keys[-1] > end.last_entry:
        raise CorruptError("the index's keys do not ascend to the ledger's last entry")
    if (np.diff(places) <= 0).any() or places[-1] >= data_length:
        raise CorruptError("the index's places do not ascend to the end of the data")
    return MapFile(header, data_length, end, keys, places)


def map_file_without_index(header: Header, data_length: int, metadata: bytes) -> MapFile:
    """One that is read from its beginning, whatever is wanted of it. Raises as ``map_file``."""
    keys, places = np.array([METADATA_KEY], np.int64), np.array([header.size], np.int64)
    return MapFile(header, data_length, parse_ledger_end(metadata), keys, places)
