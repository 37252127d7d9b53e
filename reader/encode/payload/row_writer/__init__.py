"""Bytes of each row, put together by a compiled loop.

    blocks     parts of each element, and memory for all that they write
    kernel     the compiled loop, for all formats
    addresses  loads, stores and copies at addresses

No I/O. Imports ``reader.kernels`` and ``reader.payload``.
"""
