"""Byte strings as base64, as a key that is bytes is sent."""

from typing import Any

import numpy as np

from reader.kernels.byte_spans import ByteSpans, fixed
from reader.kernels.compiling import kernel
from reader.kernels.memory import empty_bytes

_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)


def base64_text(strings: ByteSpans) -> ByteSpans:
    """Each string in base64 with padding (RFC 4648); what is not present stays so."""
    sizes = np.where(strings.present, (strings.ends - strings.starts + 2) // 3 * 4, 0)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    out = empty_bytes(int(ends[-1]) if len(ends) else 0)
    _encode(*strings.fixed(), _ALPHABET, fixed(starts), out)
    return ByteSpans(out, starts, ends, strings.present)


@kernel
def _encode(
    data: Any, starts: Any, ends: Any, present: Any, alphabet: Any, targets: Any, out: Any
) -> None:
    for i in range(len(starts)):
        if not present[i]:
            continue
        at = starts[i]
        to = targets[i]
        while ends[i] - at >= 3:
            word = np.int64(data[at]) << 16 | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2])
            out[to] = alphabet[word >> 18]
            out[to + 1] = alphabet[word >> 12 & 63]
            out[to + 2] = alphabet[word >> 6 & 63]
            out[to + 3] = alphabet[word & 63]
            at += 3
            to += 4
        left = ends[i] - at
        if left:
            word = np.int64(data[at]) << 16
            if left == 2:
                word |= np.int64(data[at + 1]) << 8
            out[to] = alphabet[word >> 18]
            out[to + 1] = alphabet[word >> 12 & 63]
            out[to + 2] = alphabet[word >> 6 & 63] if left == 2 else np.uint8(61)
            out[to + 3] = 61
