"""AVRO payloads.

    program        compiles the schemas of all versions into one program
    instructions   the instructions of a program
    kernel         the compiled loop that runs a program over payloads and fills slots
    exact_numbers  numbers that a column of another scale or kind holds exactly
    text           values that become text: recursive records, wide decimals, UUIDs
    decoder        AvroDecoder: payloads to Arrow arrays

No I/O. Imports ``reader.kernels``, ``reader.model.columns`` and, of ``reader.payload``,
``avro_schema``, ``column_types``, ``remembered``, ``slots`` and ``shared_kernels``.
"""
