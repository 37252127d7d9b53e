"""Columns against the fields of a schema: matched by name, checked, converted as a whole.

    elements     an Arrow array at a path of the schema; errors that name column and row
    matching     which column goes to which field
    leaves       numbers, texts and times as fields store them
    iso_times    times as ISO 8601 text
    decimals     decimals as bytes and as text
    maps         keys and values of maps
    unions       which member of a union is set
    json_column  columns of JSON text, value by value

No I/O. Imports ``reader.model``, ``reader.errors``, ``reader.kernels``, ``reader.payload`` and
``reader.encode.payload.row_writer``.
"""
