"""The passes over entries: numba kernels that fill the tables of ``reader.decode.tables``.

    entry_headers   pass 1: the headers of entries, one column of ``entries`` each
    decompression   pass 2: compressed payloads of a group of entries, into one buffer
    messages        pass 3: payloads to ``rows``, one column a message
    single_message  a message of a batch, and the properties of any message
    portions        passes 2 and 3 over groups of entries: portions of rows
    other_fields    fields of metadata that have no column
    column_memory   pass 4: rows to the memory behind Arrow arrays
    lz4             LZ4 blocks
    copies          copies of bytes between arrays

No I/O, and nothing is raised for what bytes hold. Imports ``reader.decode.tables`` and
``reader.kernels``.
"""
