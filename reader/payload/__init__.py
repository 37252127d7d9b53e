"""Pulsar schemas -> Arrow fields, and payload bytes -> Arrow arrays.

    registry         the versions of a topic's schema, and the columns that serve them all
    layout           which column each type becomes (docs/types.md), and how versions merge
    decoder          rows to the decoder of their schema version, and their columns together again;
                     place: the decoders of a payload, or of one half of a KeyValue
    keyvalue         two schemas out of one, two byte strings out of a payload
    primitive        STRING, INT32, LOCAL_DATE, …
    avro             avro_schema -> avro_program (of avro_ops) -> avro_kernel, one compiled loop for
                     all schemas; avro_text for what becomes text
    jsons            json_values (with json_numbers) is the meaning; json_program -> json_kernel
                     (with json_scan, json_double) gives the same for what is plain, faster
    protobuf         protobuf_schema -> protobuf_values, message by message with Google's parser;
                     protobuf_wire for what a message would lose
    slots            what the kernels write, and Arrow arrays out of it; kernels: loops they share

No I/O and no state besides compiled programs. Imports `reader.model.columns`, `reader.model`,
`reader.errors` and `reader.kernels`, nothing else.
"""

from reader.payload.decoder import DecodedPayload, PayloadDecoder
from reader.payload.prewarm import prewarm
from reader.payload.registry import payload_fields

__all__ = ["DecodedPayload", "PayloadDecoder", "payload_fields", "prewarm"]
