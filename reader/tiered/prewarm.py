"""Compiles every kernel of this room, or loads it from disk, before the first query needs it."""

from collections.abc import Callable
from functools import partial

import numpy as np

from reader.kernels.memory import empty_bytes
from reader.tiered.jcloud_blocks import JcloudWalk
from reader.tiered.jcloud_index import BLOCK_HEADER, JcloudIndex
from reader.tiered.ledger_end import LedgerEnd
from reader.tiered.sequence_file import LONG, Compression, Header
from reader.tiered.sequence_walk import sequence_walk
from reader.tiered.walk import Walk

# entry 0, which is "x"
_ENTRY = bytes.fromhex("00000001 0000000000000000 78")
_RECORD = bytes.fromhex("0000000d 00000008 0000000000000000 00000001 78")
_BLOCK = b"\xff" * 4 + bytes(16) + bytes.fromhex("01 0108 08 0000000000000000 0105 05 00000001 78")


def prewarm() -> None:
    """Read an entry of each form; some 3 s where no kernel is cached."""
    zeros = np.zeros(1, np.int64)
    index = JcloudIndex(BLOCK_HEADER + len(_ENTRY), LedgerEnd(0, 1), zeros, zeros)
    jcloud = partial(JcloudWalk, index, 0, 0, (0, BLOCK_HEADER))
    forms: list[tuple[Callable[[], Walk], bytes]] = [(jcloud, _ENTRY)]
    for compression, data in ((Compression.NONE, _RECORD), (Compression.BLOCK, _BLOCK)):
        header = Header(0, LONG, compression, lambda data, most: data, bytes(16))
        forms.append((partial(sequence_walk, header, (0, 0), 0, len(data)), data))
    for walk, data in forms:
        # A window as it was read cannot be written to; one that was put together can.
        read_only = np.frombuffer(data, np.uint8)
        writable = empty_bytes(len(data))
        writable[:] = read_only
        for window in (read_only, writable):
            if sum(len(one.lengths) for one in walk().take(window)) != 1:
                raise AssertionError("prewarm: the entry was not taken")
