"""The digest in front of every entry: 32 bytes of header, the digest's code, the data.

The header is ledger id, entry id, last add confirmed and length (i64 each, big-endian); the code
is taken over header and data. CRC32C: 4 bytes. CRC32: 8. MAC: 20, HMAC-SHA1 keyed with
SHA1("mac" + password). DUMMY: none. Source: BookKeeper's DigestManager and its subclasses.
"""

import hashlib
import hmac
import zlib
from typing import Any

import numpy as np

from reader.errors import UnsupportedError
from reader.kernels.array_types import Bools, Bytes, Int64s
from reader.kernels.compiling import kernel
from reader.kernels.crc32c import crc32c
from reader.kernels.unaligned import u32

HEADER = 32
_LENGTHS = {"CRC32C": 4, "CRC32": 8, "MAC": 20, "HMAC": 20, "DUMMY": 0}


def code_length(digest_type: str) -> int:
    """Bytes of the digest's code. Raises UnsupportedError for an unknown type."""
    if digest_type not in _LENGTHS:
        raise UnsupportedError(f"ledgers of digest type {digest_type} are not read directly")
    return _LENGTHS[digest_type]


def verify(
    digest_type: str,
    password: bytes,
    arena: Bytes,
    offsets: Int64s,
    lengths: Int64s,
    ledger: int,
    entries: Int64s,
) -> Bools:
    """Which of the stored entries ``arena[offsets : offsets + lengths]`` pass their digest.

    Their header has to have the id of the ledger, and theirs in ``entries``. Raises
    UnsupportedError for an unknown type.
    """
    code = code_length(digest_type)
    good = np.zeros(len(offsets), np.bool_)
    _headers(arena, offsets, lengths, ledger, entries, HEADER + code, good)
    if digest_type == "CRC32C":
        _crc32c(arena, offsets, lengths, good)
    elif digest_type != "DUMMY":
        key = hashlib.sha1(b"mac" + password).digest()
        data = arena.data
        for i in np.flatnonzero(good).tolist():
            at, end = int(offsets[i]), int(offsets[i] + lengths[i])
            header, stored = data[at : at + HEADER], data[at + HEADER : at + HEADER + code]
            rest = data[at + HEADER + code : end]
            if digest_type == "CRC32":
                found = zlib.crc32(rest, zlib.crc32(header)).to_bytes(8, "big")
            else:
                found = hmac.digest(key, bytes(header) + bytes(rest), "sha1")
            good[i] = hmac.compare_digest(found, bytes(stored))
    return good


@kernel
def _i64(buf: Any, at: int) -> Any:
    value = np.uint64(0)
    for i in range(8):
        value = (value << np.uint64(8)) | np.uint64(buf[at + i])
    return np.int64(value)


@kernel
def _headers(
    buf: Any, offsets: Any, lengths: Any, ledger: int, entries: Any, least: int, good: Any
) -> None:
    for i in range(len(offsets)):
        at = offsets[i]
        if at < 0 or lengths[i] < least or at > len(buf) - lengths[i]:
            continue
        good[i] = _i64(buf, at) == ledger and _i64(buf, at + 8) == entries[i]


@kernel
def _crc32c(buf: Any, offsets: Any, lengths: Any, good: Any) -> None:
    for i in range(len(offsets)):
        if good[i]:
            at = offsets[i]
            head = crc32c(buf, at, 32, 0)
            good[i] = crc32c(buf, at + 36, lengths[i] - 36, head) == u32(buf, at + 32)
