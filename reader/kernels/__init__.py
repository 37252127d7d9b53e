"""Kernels.

compiling            How numba kernels are compiled: cached on disk, without the GIL, witho
crc32c               CRC32C (Castagnoli): the checksum of BookKeeper's digests and of Pulsa
memory               Memory for arrays of some size, from Arrow's allocator.
spans                Byte strings as places in one buffer, which is how compiled loops take
unaligned            Loads, stores and compares of words of 1 to 16 bytes, at any alignment
"""

__all__: list[str] = []
