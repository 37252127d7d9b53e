"""The encryption context of an entry: what a consumer needs to decrypt it.

Fields of MessageMetadata (PulsarApi.proto): encryption_keys 13 (key 1, value 2, metadata 3),
encryption_algo 14, encryption_param 15, compression 8, uncompressed_size 9,
num_messages_in_batch 11. Names as in the Java client's EncryptionContext.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.decode.arrays import Rows
from reader.decode.tables import E_FLAGS, E_METADATA, E_METADATA_LENGTH, IS_ENCRYPTED, R_ENTRY
from reader.errors import CorruptError
from reader.model.columns import METADATA
from reader.wire import fields

_COMPRESSIONS = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")
# A context shows no more keys, and no more properties of one: the rest is in its ``metadata``. As
# objects, empty ones take a few hundred times their bytes.
_MOST_KEYS = 1000
_AT_ONCE = 64


def context_array(rows: Rows) -> pa.Array:
    """The context of each row's entry; NULL for what is not encrypted."""
    kind = METADATA.field("__encryptionContext").type
    encrypted = rows.entry(E_FLAGS) & IS_ENCRYPTED != 0
    if not encrypted.any():
        return pa.nulls(len(rows), kind)
    numbers, which = np.unique(rows.row(R_ENTRY)[encrypted], return_inverse=True)
    known = [pa.array([], kind)]
    for first in range(0, len(numbers), _AT_ONCE):
        some = []
        for i in numbers[first : first + _AT_ONCE].tolist():
            at = int(rows.entries[E_METADATA, i])
            raw = rows.arena[at : at + int(rows.entries[E_METADATA_LENGTH, i])].tobytes()
            some.append(encryption_context(raw))
        known.append(pa.array(some, kind))
    indices = np.full(len(rows), -1, np.int64)
    indices[encrypted] = which
    return pa.concat_arrays(known).take(pa.array(indices, mask=indices < 0))


def context_bytes(entries: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """What the context takes at most in each row of an entry, in bytes.

    The metadata once more, its texts (a byte that is no UTF-8 becomes three), and for the smallest
    key, of 2 bytes, its offsets.
    """
    found: npt.NDArray[np.int64] = np.where(
        entries[E_FLAGS] & IS_ENCRYPTED != 0, 12 * entries[E_METADATA_LENGTH] + 64, 0
    )
    return found


def encryption_context(metadata: bytes) -> dict[str, Any]:
    """The value of ``__encryptionContext``, of a MessageMetadata that is well-formed."""
    keys: list[dict[str, Any]] = []
    found: dict[str, Any] = {
        "keys": keys,
        "param": None,
        "algorithm": None,
        "compression": "NONE",
        "uncompressedSize": None,
        "batchSize": None,
        "metadata": metadata,
    }
    for number, value in _fields(metadata):
        match number, value:
            case 13, bytes() if len(keys) < _MOST_KEYS:
                keys.append(_key(value))
            case 14, bytes():
                found["algorithm"] = _text(value)
            case 15, bytes():
                found["param"] = value
            case 8, int():
                known = value < len(_COMPRESSIONS)
                found["compression"] = _COMPRESSIONS[value] if known else str(value)
            case 9, int():
                found["uncompressedSize"] = value & 0xFFFFFFFF
            case 11, int():
                found["batchSize"] = (value & 0xFFFFFFFF) - (value >> 31 & 1) * 2**32
    return found


def encryption_keys(metadata: bytes) -> tuple[bytes, Iterator[tuple[str, bytes]]]:
    """(the nonce, the name and encrypted data key of each key) of a well-formed MessageMetadata.

    One key at a time: there may be as many as fit.
    """
    param = b""
    for number, value in _fields(metadata):
        if number == 15 and isinstance(value, bytes):
            param = value
    fields = (value for number, value in _fields(metadata) if number == 13)
    keys = (_key(value) for value in fields if isinstance(value, bytes))
    return param, ((key["name"], key["value"]) for key in keys)


def _key(message: bytes) -> dict[str, Any]:
    name, value = "", b""
    metadata: dict[str, str] = {}
    for number, field in _fields(message):
        match number, field:
            case 1, bytes():
                name = _text(field)
            case 2, bytes():
                value = field
            case 3, bytes() if len(metadata) < _MOST_KEYS:
                pair = dict(_fields(field))
                metadata[_text(pair.get(1, b""))] = _text(pair.get(2, b""))
    return {"name": name, "value": value, "metadata": list(metadata.items())}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field; ends where the message is malformed."""
    with suppress(CorruptError):
        yield from fields(message, "an entry's metadata")
