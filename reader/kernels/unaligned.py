"""Loads, stores and compares of 1 to 16 bytes at any alignment, for numba kernels.

All take contiguous arrays of uint8. None checks a range: the caller has to.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic

from reader.kernels.compiling import inlined

HIGH_BITS = np.uint64(0x8080808080808080)
"""Of each byte of a word: none is set where all of them are ASCII."""


def _address(builder: Any, context: Any, kind: Any, array: Any, at: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def _read(builder: Any, address: Any, kind: Any) -> Any:
    word = builder.load(builder.bitcast(address, kind.as_pointer()))
    word.align = 1
    return word


def _bytes(*arrays: Any) -> bool:
    return all(
        isinstance(one, types.Array) and one.layout == "C" and one.dtype == types.uint8
        for one in arrays
    )


def _loader(width: int, result: Any) -> Any:
    def typer(typingctx: Any, buf: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(builder, context, signature.args[0], *args)
            word = _read(builder, address, ir.IntType(width))
            return word if width == 64 else builder.zext(word, ir.IntType(64))

        return (result(buf, types.int64), codegen) if _bytes(buf) else None

    return intrinsic(typer)


def _mover(width: int) -> Any:
    def typer(typingctx: Any, out: Any, to: Any, buf: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = _vector(width)
            target = _address(builder, context, signature.args[0], args[0], args[1])
            source = _address(builder, context, signature.args[2], args[2], args[3])
            word = _read(builder, source, kind)
            builder.store(word, builder.bitcast(target, kind.as_pointer()), align=1)
            return context.get_dummy_value()

        kinds = types.void(out, types.int64, buf, types.int64)
        return (kinds, codegen) if _bytes(out, buf) else None

    return intrinsic(typer)


def _vector(width: int) -> Any:
    return ir.VectorType(ir.IntType(8), width)


def _mask(builder: Any, flags: Any) -> Any:
    """A vector's truth values as the low bits of an integer."""
    bits = builder.bitcast(flags, ir.IntType(flags.type.count))
    return builder.zext(bits, ir.IntType(64))


def _splat(byte: int, width: int) -> Any:
    return ir.Constant(_vector(width), [byte] * width)


def _same16(typingctx: Any, one: Any, at: Any, two: Any, there: Any) -> Any:
    """Bit i of the result: whether ``one[at + i] == two[there + i]``, for 16 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left = _address(builder, context, signature.args[0], args[0], args[1])
        right = _address(builder, context, signature.args[2], args[2], args[3])
        left, right = _read(builder, left, _vector(16)), _read(builder, right, _vector(16))
        return _mask(builder, builder.icmp_unsigned("==", left, right))

    kinds = types.int64(one, types.int64, two, types.int64)
    return (kinds, codegen) if _bytes(one, two) else None


def _special32(typingctx: Any, buf: Any, at: Any) -> Any:
    """Bit i of the result: whether ``buf[at + i]`` ends a plain part of a JSON string.

    That is a quote, a backslash, a control character, or not ASCII.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _read(builder, _address(builder, context, signature.args[0], *args), _vector(32))
        quote = builder.icmp_unsigned("==", word, _splat(0x22, 32))
        backslash = builder.icmp_unsigned("==", word, _splat(0x5C, 32))
        other = builder.icmp_signed("<", word, _splat(0x20, 32))
        return _mask(builder, builder.or_(builder.or_(quote, backslash), other))

    return (types.int64(buf, types.int64), codegen) if _bytes(buf) else None


def _first_bit(typingctx: Any, mask: Any) -> Any:
    """The position of the lowest bit that is set; 64 without any."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), codegen


def _leading_zeros(typingctx: Any, word: Any) -> Any:
    """Zero bits above the highest that is set; 64 without any."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


load8: Any = _loader(8, types.int64)
load16: Any = _loader(16, types.int64)
load64: Any = _loader(64, types.uint64)
move8: Any = _mover(8)
move16: Any = _mover(16)
same16: Any = intrinsic(_same16)
special32: Any = intrinsic(_special32)
first_bit: Any = intrinsic(_first_bit)
leading_zeros: Any = intrinsic(_leading_zeros)


@inlined
def u32(data: Any, at: Any) -> Any:
    """Big-endian."""
    return (
        (np.int64(data[at]) << 24)
        | (np.int64(data[at + 1]) << 16)
        | (np.int64(data[at + 2]) << 8)
        | np.int64(data[at + 3])
    )
