"""Loads, stores and copies at addresses, for numba kernels: columns lie in buffers of their own.

An address is an int64. Nothing is checked, and nothing outside of the stated bytes is touched: the
caller keeps the memory alive, and has to know how much there is.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from reader.kernels.compiling import inlined, kernel


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _read(builder: Any, address: Any, kind: Any) -> Any:
    word = builder.load(_pointer(builder, address, kind))
    word.align = 1
    return word


def _loader(width: int) -> Any:
    def typer(typingctx: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = _read(builder, args[0], ir.IntType(width))
            return word if width == 64 else builder.zext(word, ir.IntType(64))

        return types.int64(types.int64), codegen

    return intrinsic(typer)


def _storer(width: int) -> Any:
    def typer(typingctx: Any, to: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(width)
            value = args[1] if width == 64 else builder.trunc(args[1], kind)
            builder.store(value, _pointer(builder, args[0], kind), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return intrinsic(typer)


def _mover(width: int) -> Any:
    """``move(to, at, size)``: the first and the last bytes of ``size``, which may overlap."""

    def typer(typingctx: Any, to: Any, at: Any, size: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to, at, size = args
            kind = ir.VectorType(ir.IntType(8), width)
            last = builder.sub(size, ir.Constant(ir.IntType(64), width))
            first_word = _read(builder, at, kind)
            last_word = _read(builder, builder.add(at, last), kind)
            builder.store(first_word, _pointer(builder, to, kind), align=1)
            builder.store(last_word, _pointer(builder, builder.add(to, last), kind), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return intrinsic(typer)


def _move_any(typingctx: Any, to: Any, at: Any, size: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8)
        target, source = _pointer(builder, args[0], byte), _pointer(builder, args[1], byte)
        move: Any = cgutils.raw_memcpy
        move(builder, target, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def _special_mask(typingctx: Any, at: Any) -> Any:
    """Bit i of the result: whether byte i of 32 needs an escape in a JSON string.

    That is a quote, a backslash or a control character.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), 32)
        word = _read(builder, args[0], kind)

        def splat(byte: int) -> Any:
            return ir.Constant(kind, [byte] * 32)

        quote = builder.icmp_unsigned("==", word, splat(0x22))
        backslash = builder.icmp_unsigned("==", word, splat(0x5C))
        control = builder.icmp_unsigned("<", word, splat(0x20))
        found = builder.or_(builder.or_(quote, backslash), control)
        return builder.zext(builder.bitcast(found, ir.IntType(32)), ir.IntType(64))

    return types.int64(types.int64), codegen


load8: Any = _loader(8)
load64: Any = _loader(64)
store8: Any = _storer(8)
store64: Any = _storer(64)
special_mask: Any = intrinsic(_special_mask)
_ends2: Any = _mover(2)
_ends4: Any = _mover(4)
_ends8: Any = _mover(8)
_ends16: Any = _mover(16)
_move_all: Any = intrinsic(_move_any)


@inlined
def move32(to: int, at: int) -> None:
    """Copy 32 bytes."""
    _ends16(to, at, 32)


@kernel
def copy(to: int, at: int, size: int) -> None:
    """Copy ``size`` bytes to where none of them lies."""
    if size >= 8:
        if size > 32:
            _move_all(to, at, size)
        elif size >= 16:
            _ends16(to, at, size)
        else:
            _ends8(to, at, size)
    elif size >= 4:
        _ends4(to, at, size)
    elif size >= 2:
        _ends2(to, at, size)
    elif size == 1:
        store8(to, load8(at))
