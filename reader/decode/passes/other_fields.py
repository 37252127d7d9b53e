"""Fields of metadata that have no column: found, and copied as they are.

MessageMetadata and SingleMessageMetadata grow with Pulsar. Fields that are not known here, and
those that are known and have no column (schema_id 32, replicate_to 7), are kept in
``__otherMetadata`` as protobuf's bytes.
"""

from typing import Any

import numpy as np

from reader.decode.passes.copies import copy
from reader.kernels.compiling import inlined, kernel
from reader.kernels.protobuf_wire import field

# Tags: the field's number and, in the lowest three bits, its wire type. These have a column, or say
# how the entry is stored (compression, batch, encryption, transaction, chunks, marker), or follow
# from the messages (highest_sequence_id, 24).
_ENTRY_TAGS = (
    0x0A, 0x10, 0x18, 0x22, 0x2A, 0x32, 0x40, 0x48, 0x58, 0x60, 0x6A, 0x72, 0x7A, 0x82, 0x88, 0x92,
    0x98, 0xA0, 0xB0, 0xB8, 0xC0, 0xC8, 0xD2, 0xD8, 0xE0, 0xE8, 0xF0,
)  # fmt: skip
_SINGLE_TAGS = (0x0A, 0x12, 0x18, 0x20, 0x28, 0x30, 0x3A, 0x40, 0x48, 0x50)


@inlined
def is_other(tag: Any) -> bool:
    """Whether a field of MessageMetadata is kept in ``__otherMetadata``."""
    return tag not in _ENTRY_TAGS


@inlined
def is_other_single(tag: Any) -> bool:
    """Whether a field of SingleMessageMetadata is kept in ``__otherMetadata``."""
    return tag not in _SINGLE_TAGS


@inlined
def _size(buf: Any, at: Any, end: Any, single: Any) -> Any:
    total = np.int64(0)
    while at < end:
        begin = at
        tag, _, _, at = field(buf, at, end)
        if at < 0:
            raise ValueError("other fields: malformed metadata")
        if is_other_single(tag) if single else is_other(tag):
            total += at - begin
    return total


@inlined
def _copy_fields(buf: Any, at: Any, end: Any, single: Any, out: Any, to: Any) -> None:
    while at < end:
        begin = at
        tag, _, _, at = field(buf, at, end)
        if is_other_single(tag) if single else is_other(tag):
            copy(out, to, buf, begin, at - begin)
            to += at - begin


@kernel
def measure_other_fields(
    arena: Any, inflated: Any, offsets: Any, lengths: Any, single: Any, sizes: Any
) -> None:
    """Set ``sizes[i]`` to the bytes of the fields of metadata i that are kept.

    ``offsets`` and ``lengths`` are as in ``tables``. ``single``: whether they are
    SingleMessageMetadata.
    """
    for i in range(len(offsets)):
        at, size = offsets[i], lengths[i]
        sizes[i] = 0
        if size > 0 and at >= 0:
            sizes[i] = _size(arena, at, at + size, single)
        elif size > 0:
            sizes[i] = _size(inflated, ~at, ~at + size, single)


@kernel
def copy_other_fields(
    arena: Any, inflated: Any, offsets: Any, lengths: Any, single: Any, starts: Any, out: Any
) -> None:
    """Copy the measured fields of metadata i to ``out[starts[i]:starts[i + 1]]``."""
    for i in range(len(offsets)):
        at, size = offsets[i], lengths[i]
        if starts[i] == starts[i + 1]:
            continue
        if at >= 0:
            _copy_fields(arena, at, at + size, single, out, starts[i])
        else:
            _copy_fields(inflated, ~at, ~at + size, single, out, starts[i])
