"""CRC32C (Castagnoli): the checksum of BookKeeper's digests and of Pulsar's messages.

One numba function, callable from Python and from other kernels. Where the CPU has SSE4.2 it is the
CPU's instruction (8 bytes a step), elsewhere eight tables of 256 values ("slicing by eight").
The parameters are those of RFC 3720, appendix B.4: reflected polynomial 0x82F63B78, all ones in,
all ones out; ``crc32c(b"123456789")`` is 0xE3069283.
"""

import platform
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba import types
from numba.core.extending import intrinsic

from reader.kernels.compiling import kernel
from reader.kernels.unaligned import load64


def _hardware() -> bool:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    config: Any = numba.config
    if config.CPU_FEATURES is not None:  # numba compiles for these features
        return "+sse4.2" in config.CPU_FEATURES
    if config.CPU_NAME not in (None, "", "host"):
        return False
    return bool(binding.get_host_cpu_features().get("sse4.2", False))


HARDWARE = _hardware()


def _tables() -> npt.NDArray[np.uint32]:
    """(8, 256): table k advances a byte over k further zero bytes."""
    tables = np.zeros((8, 256), np.uint32)
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & 1, (first >> 1) ^ np.uint32(0x82F63B78), first >> 1)
    tables[0] = first
    for k in range(1, 8):
        tables[k] = (tables[k - 1] >> 8) ^ first[tables[k - 1] & 0xFF]
    return tables


_TABLES = _tables()


def _instruction(bits: Any) -> Any:
    def typer(typingctx: Any, crc: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide = ir.IntType(max(bits, 32))
            kind = ir.FunctionType(wide, [wide, ir.IntType(bits)])
            name = f"llvm.x86.sse42.crc32.{max(bits, 32)}.{bits}"
            call = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            return builder.call(call, args)

        wide = types.uint64 if bits == 64 else types.uint32
        return wide(wide, types.uint64 if bits == 64 else types.uint8), codegen

    return intrinsic(typer)


_step64 = _instruction(64)
_step8 = _instruction(8)


@kernel
def crc32c_portable(buf: Any, offset: Any, length: Any, seed: Any = 0) -> Any:
    """As ``crc32c``, without the CPU's instruction."""
    if offset < 0 or length < 0 or offset > len(buf) - length:
        raise IndexError("crc32c: range outside of the buffer")
    crc = np.uint32(seed) ^ np.uint32(0xFFFFFFFF)
    at = offset
    end = offset + length
    while end - at >= 8:
        low = crc ^ (
            np.uint32(buf[at])
            | (np.uint32(buf[at + 1]) << np.uint32(8))
            | (np.uint32(buf[at + 2]) << np.uint32(16))
            | (np.uint32(buf[at + 3]) << np.uint32(24))
        )
        crc = (
            _TABLES[7, low & np.uint32(0xFF)]
            ^ _TABLES[6, (low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ _TABLES[5, (low >> np.uint32(16)) & np.uint32(0xFF)]
            ^ _TABLES[4, low >> np.uint32(24)]
            ^ _TABLES[3, buf[at + 4]]
            ^ _TABLES[2, buf[at + 5]]
            ^ _TABLES[1, buf[at + 6]]
            ^ _TABLES[0, buf[at + 7]]
        )
        at += 8
    while at < end:
        crc = (crc >> np.uint32(8)) ^ _TABLES[0, (crc ^ np.uint32(buf[at])) & np.uint32(0xFF)]
        at += 1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))


@kernel
def _crc32c_hardware(buf: Any, offset: Any, length: Any, seed: Any = 0) -> Any:
    if offset < 0 or length < 0 or offset > len(buf) - length:
        raise IndexError("crc32c: range outside of the buffer")
    wide = np.uint64(np.uint32(seed) ^ np.uint32(0xFFFFFFFF))
    at = offset
    end = offset + length
    while end - at >= 8:
        wide = _step64(wide, load64(buf, at))
        at += 8
    crc = np.uint32(wide)
    while at < end:
        crc = _step8(crc, buf[at])
        at += 1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))


# crc32c(buf, offset, length, seed=0) -> int: the CRC32C of buf[offset : offset + length], 0 to
# 2**32 - 1. ``buf`` is contiguous uint8; ``seed`` is the checksum of what came before (that of
# a + b is that of b seeded with that of a). Raises IndexError for a range outside of ``buf``.
crc32c: Callable[..., int] = _crc32c_hardware if HARDWARE else crc32c_portable
