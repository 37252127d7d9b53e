"""Copies of bytes between arrays, as numba functions."""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from reader.kernels.compiling import kernel


def _copy(typingctx: Any, out: Any, to: Any, buf: Any, at: Any, count: Any) -> Any:
    """memcpy of ``count`` bytes; the caller has checked both ranges."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = context.make_array(signature.args[0])(context, builder, args[0]).data
        source = context.make_array(signature.args[2])(context, builder, args[2]).data
        memcpy: Any = cgutils.raw_memcpy
        memcpy(builder, builder.gep(target, [args[1]]), builder.gep(source, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    for array in (out, buf):
        if not (isinstance(array, types.Array) and array.layout == "C"):
            return None
        if array.dtype != types.uint8:
            return None
    return types.void(out, types.int64, buf, types.int64, types.int64), codegen


copy: Any = intrinsic(_copy)


@kernel
def gather(arena: Any, inflated: Any, offsets: Any, lengths: Any, starts: Any, out: Any) -> None:
    """Copy value i (``offsets``, ``lengths`` as in ``tables``) to ``out[starts[i]:]``."""
    for i in range(len(offsets)):
        size = lengths[i]
        if size <= 0:
            continue
        at = offsets[i]
        to = starts[i]
        if to < 0 or to > len(out) - size:
            raise IndexError("gather: target range")
        if at >= 0:
            if at > len(arena) - size:
                raise IndexError("gather: source range")
            copy(out, to, arena, at, size)
        else:
            if ~at > len(inflated) - size:
                raise IndexError("gather: source range")
            copy(out, to, inflated, ~at, size)
