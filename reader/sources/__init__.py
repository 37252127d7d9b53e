"""Sources.

broker               The broker source: the same messages through ``pulsar-client``, where
ciphertext           Encrypted entries that a table holds as they are, decrypted when they
delta                A table's Parquet files read in Python: the cold part of ``format("pul
fallback             A split to Arrow batches, from whichever tier can give it.
lookback             What a split's decoder asks about the rest of the partition: see ``rea
rows                 Messages to rows: metadata columns, decoded payload columns, and what
"""

__all__: list[str] = []
