"""Entries of a compacted ledger: entries of the partition, each behind its position. No I/O.

Each is a ``RawMessageImpl`` of Pulsar: ``u32 size`` and a ``MessageIdData``, ``u32 size`` and the
entry as the partition's own ledger has it, but that compaction has marked the messages of a batch
that it took out.
"""

from collections.abc import Iterator

import numpy as np
from google.protobuf.message import DecodeError

from reader.errors import CorruptError
from reader.model import EntryBlock, Position
from reader.wire.pulsar_pb2 import MessageIdData

_SIZE = 4


def unwrapped(block: EntryBlock, after: Position) -> Iterator[EntryBlock]:
    """The partition's entries behind ``after``, in blocks of one ledger each. Positions ascend.

    The blocks share the memory of ``block``, which is one of a compacted ledger. Raises
    CorruptError for anything that is not in its form.
    """
    if block.damaged:
        raise CorruptError(_error(block, min(block.damaged), block.damaged[min(block.damaged)]))
    found: dict[int, list[tuple[int, int, int]]] = {}
    for number in range(len(block)):
        try:
            position, offset, length = _entry(block, number)
        except ValueError as error:
            raise CorruptError(_error(block, number, str(error))) from error
        if position > after:
            after = position
            found.setdefault(position.ledger, []).append((position.entry, offset, length))
    for ledger_id, entries in found.items():
        ids, offsets, lengths = np.array(entries, np.int64).T
        yield EntryBlock(ledger_id, ids, offsets, lengths, block.arena)


def _entry(block: EntryBlock, number: int) -> tuple[Position, int, int]:
    """Position, offset and length of the entry that one of the block's has in it."""
    at = int(block.offsets[number])
    end = at + int(block.lengths[number])
    size, begin = _sized(block, at, end)
    try:
        message_id = MessageIdData.FromString(block.arena[begin : begin + size].tobytes())
    except DecodeError:
        raise ValueError("a message id is not protobuf, or ends too early") from None
    if message_id.ledgerId < 0 or message_id.entryId < 0:
        raise ValueError(f"its message id is {message_id.ledgerId}:{message_id.entryId}")
    length, offset = _sized(block, begin + size, end)
    if offset + length != end:
        raise ValueError(f"{end - offset - length} bytes follow it")
    return Position(message_id.ledgerId, message_id.entryId), offset, length


def _sized(block: EntryBlock, at: int, end: int) -> tuple[int, int]:
    """A size that is within the entry, and where the bytes begin that have it."""
    begin = at + _SIZE
    size = int.from_bytes(block.arena[at:begin].tobytes(), "big")
    if begin > end or size > end - begin:
        raise ValueError("it is cut off")
    return size, begin


def _error(block: EntryBlock, number: int, reason: str) -> str:
    return f"entry {block.ledger_id}:{block.entry_ids[number]} of a compacted ledger: {reason}"
