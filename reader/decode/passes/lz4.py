"""LZ4 blocks, decoded straight into a range of an arena.

Not ``pyarrow.Codec("lz4_raw")``: that one does not say how many bytes came out, so that a payload
shorter than stated would end in uninitialised memory, and cannot write into an existing buffer.
Source: lz4.org, "LZ4 Block Format Description".
"""

from typing import Any

import numpy as np

from reader.decode.passes.copies import copy
from reader.kernels.compiling import kernel
from reader.kernels.unaligned import load8, load16, move8, move16


@kernel
def lz4_decode(buf: Any, at: Any, end: Any, out: Any, to: Any, size: Any) -> Any:
    """Decode ``buf[at:end]`` to ``out[to : to + size]``: whether it is exactly ``size`` bytes.

    Nothing outside of both ranges is read or written, whatever the bytes are.
    """
    if at < 0 or end > len(buf) or to < 0 or size < 0 or size > len(out) - to:
        return False
    start = to
    stop = to + size
    while at < end:
        token = load8(buf, at)
        at += 1
        count = token >> 4
        # Most sequences are short. Up to 14 literals and 18 repeated bytes far from both ends are
        # copied in fixed strides, even beyond their own end: what follows overwrites that.
        if count < 15 and token & 15 < 15 and end - at >= 18 and stop - to >= 40:
            move16(out, to, buf, at)
            near = load16(buf, at + count)
            if 8 <= near <= to + count - start:
                at += count + 2
                to += count
                if near >= 16:
                    move16(out, to, out, to - near)
                    move8(out, to + 16, out, to + 16 - near)
                else:
                    move8(out, to, out, to - near)
                    move8(out, to + 8, out, to + 8 - near)
                    move8(out, to + 16, out, to + 16 - near)
                to += (token & 15) + 4
                continue
        if count == 15:
            more = np.int64(255)
            while more == 255:
                if at >= end:
                    return False
                more = load8(buf, at)
                at += 1
                count += more
        if count > end - at or count > stop - to:
            return False
        if count <= 16 and end - at >= 16 and stop - to >= 16:
            move16(out, to, buf, at)
        else:
            copy(out, to, buf, at, count)
        at += count
        to += count
        if at == end:
            return to == stop
        if end - at < 2:
            return False
        back = load16(buf, at)
        at += 2
        if back == 0 or back > to - start:
            return False
        count = (token & 15) + 4
        if count == 19:
            more = np.int64(255)
            while more == 255:
                if at >= end:
                    return False
                more = load8(buf, at)
                at += 1
                count += more
        if count > stop - to:
            return False
        done = to + count
        if back >= 16 and stop - done >= 16:
            while to < done:
                move16(out, to, out, to - back)
                to += 16
        elif back >= 8 and stop - done >= 8:
            while to < done:
                move8(out, to, out, to - back)
                to += 8
        else:
            while to < done:
                out[to] = out[to - back]
                to += 1
        to = done
    return False
