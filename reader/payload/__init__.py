"""Pulsar schemas to Arrow fields, and payload bytes to Arrow arrays.

    registry        the versions of a topic's schema, and the columns that serve them all
    column_types    which column each type becomes (docs/types.md)
    remembered      what each column stands for, and how columns grow from version to version
    avro_schema     schema text of AVRO and JSON to a tree of types
    decoder         PayloadDecoder: each row by its schema version, the columns joined again
    member_decoder  the decoders of a payload, or of one half of a KeyValue, by kind of schema
    keyvalue        KEY_VALUE: two schemas in one, two byte strings in one payload
    primitive       STRING, INT32, LOCAL_DATE, …
    avro            AVRO: a compiled loop for all schemas
    json            JSON: a reference in Python, and a compiled loop for plain payloads
    protobuf        PROTOBUF and PROTOBUF_NATIVE: message by message with Google's parser
    slots           what the compiled loops write, and Arrow arrays of it
    shared_kernels  numba functions that more than one format needs
    python_rows     messages that are read one by one in Python
    budget          how much memory the columns of one call may take
    prewarm         compiles the kernels before the first query needs them

A new type of Pulsar's schemas needs its name in ``reader.pulsar.binary.schema_messages``, a line in
``primitive``, or a kind in ``registry`` with a decoder in ``member_decoder``, and an encoder in
``reader.encode.payload.encoder``.

No I/O, and no state except compiled programs. A payload whose columns do not reproduce it is never
an error: its row has a *problem*, one line of text. Imports only ``reader.model``,
``reader.errors``, ``reader.kernels`` and ``reader.wire``.
"""

from typing import TYPE_CHECKING, Any

from reader.payload.budget import OutputBudget
from reader.payload.registry import payload_fields
from reader.payload.remembered.lives import remember
from reader.payload.remembered.origins import same_origins

if TYPE_CHECKING:
    from reader.payload.decoder import DecodedPayload, PayloadDecoder
    from reader.payload.prewarm import prewarm

__all__ = [
    "DecodedPayload",
    "OutputBudget",
    "PayloadDecoder",
    "payload_fields",
    "prewarm",
    "remember",
    "same_origins",
]


def __getattr__(name: str) -> Any:
    # Late, because planning needs a topic's columns and none of the kernels that fill them.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reader.payload import decoder
    from reader.payload.prewarm import prewarm

    # Kept, for one reason more: importing a module puts it there under its own name.
    globals().update(
        DecodedPayload=decoder.DecodedPayload,
        PayloadDecoder=decoder.PayloadDecoder,
        prewarm=prewarm,
    )
    return globals()[name]
