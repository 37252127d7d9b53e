"""JSON payloads, whose schemas are Avro's (``reader.payload.avro_schema``).

    values        one payload in Python: the reference
    scalars       the forms that values of leaf columns have, in Python
    time_forms    the forms of dates and times, and which of them are certain, in Python
    member_names  names in another case, and Java maps with keys that are no strings
    branches      which branches of a union may take a value
    numbers       number literals to exact column values
    program       compiles schemas into tables for the compiled loop
    kernel        the compiled loop: reads plain payloads, and defers all others to ``values``
    forms         numba functions for the forms in ``scalars`` and ``time_forms``
    tokens        numba functions that find tokens of JSON
    double        numba function from decimal numbers to doubles
    decoder       JsonDecoder: payloads to Arrow arrays, by the loop or the reference

No I/O. Imports ``reader.kernels``, ``reader.model`` and, of ``reader.payload``,
``avro_schema``, ``avro.text``, ``column_types``, ``slots`` and ``shared_kernels``.
"""
