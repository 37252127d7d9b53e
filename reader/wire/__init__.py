"""Protocol Buffers that several rooms share, without numba; compiled: ``reader.kernels``.

    pulsar_pb2       Pulsar's commands and metadata, generated from ``pulsar.proto``
    protobuf_fields  the wire format, for what no definition is compiled of

Imports only ``reader.errors``.
"""

from reader.wire.protobuf_fields import Fields, encoded, fields, read_varint, varint

__all__ = ["Fields", "encoded", "fields", "read_varint", "varint"]
