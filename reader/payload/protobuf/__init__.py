"""PROTOBUF and PROTOBUF_NATIVE schemas and payloads.

    schema          definitions to message classes, and the columns of their fields
    values          one payload to column values, by Google's parser
    wire_size       how much a payload would become
    unknown_fields  what of a payload its parsed message does not reproduce
    decoder         ProtobufDecoder: payloads to Arrow arrays

No I/O. Imports ``reader.errors``, ``reader.kernels``, ``reader.model.column_names``,
``reader.wire`` and, of ``reader.payload``, ``column_types``.
"""
