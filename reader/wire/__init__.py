"""The wire format that several protocols share, without numba; compiled: ``reader.kernels``.

    protobuf_fields  Protocol Buffers' wire format

Imports only ``reader.errors``.
"""

from __future__ import annotations

from reader.wire.protobuf_fields import Fields, encoded, fields, read_varint, signed, varint

__all__ = ["Fields", "encoded", "fields", "read_varint", "signed", "varint"]
