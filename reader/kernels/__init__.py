"""What all numba kernels share: how they are compiled and cached, and loads, buffers, checksums.

    compiling      ``kernel`` and ``inlined``: the decorators of every kernel
    cache          where compiled kernels are kept on disk, each module's by a hash of its sources
    begun          when this process began to import the package, and from where
    unaligned      loads, stores and compares of 1 to 16 bytes at any alignment
    protobuf_wire  the fields of protobuf messages
    utf8           whether bytes are ASCII or UTF-8
    crc32c         CRC32C, the checksum of BookKeeper's digests and of Pulsar's messages
    memory         uninitialised arrays from Arrow's allocator
    array_types    types of arrays
    byte_spans     ByteSpans: byte strings as ranges of one buffer

Kernels of a format that one room reads live there (``reader.decode``, ``reader.payload``,
``reader.bookkeeper``). Imports nothing else of the project.
"""
