"""Payload columns to payload bytes: the inverse of ``reader.payload``.

    encoder           PayloadEncoder: rows to payloads, and keys of a KeyValue
    target_columns    the columns that rows for a topic may have
    new_schemas       the schema of a new topic, out of the columns of a DataFrame
    primitive_values  STRING, INT32, LOCAL_DATE, …
    avro_parts        AVRO
    avro_datum        AVRO, value by value: JSON text and defaults
    json_datum        JSON, value by value: JSON text and defaults
    defaults          which defaults are written for columns that rows lack
    json_parts        JSON
    protobuf_parts    PROTOBUF_NATIVE
    protobuf_scalars  PROTOBUF_NATIVE: the scalar types
    arrow_columns     columns against the fields of a schema: matched, checked, converted
    row_writer        the compiled loop that puts the bytes of each row together

No I/O, and no state. A batch is checked as a whole: a value that cannot be stored is an error, and
then nothing is written. What is nested is written before what it is in, so all formats share one
loop without recursion. Imports only ``reader.model``, ``reader.errors``, ``reader.kernels``,
``reader.payload`` and ``reader.wire``.
"""

from reader.encode.payload.defaults import FieldDefault, field_defaults
from reader.encode.payload.encoder import PayloadEncoder, prewarm
from reader.encode.payload.new_schemas import grown_schema, new_schema
from reader.encode.payload.target_columns import TargetColumns, target_columns

__all__ = [
    "FieldDefault",
    "PayloadEncoder",
    "TargetColumns",
    "field_defaults",
    "grown_schema",
    "new_schema",
    "prewarm",
    "target_columns",
]
