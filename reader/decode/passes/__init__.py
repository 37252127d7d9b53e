"""Passes.

inflate              Pass 2: compressed payloads of a group of entries, inflated into one b
lz4                  LZ4 blocks, decoded straight into their place in an arena.
protobuf             Protobuf's wire format and UTF-8, as numba functions over a byte array
scan                 Pass 1: the headers of raw entries, one column of the ``entries`` tabl
single               One message of a batch, and the properties of any message.
walk                 Pass 3: payloads to rows, one column of the ``rows`` table for each me
"""

__all__: list[str] = []
