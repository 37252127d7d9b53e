"""KEY_VALUE: two schemas in one, and two byte strings in one payload.

The key lies before the value in the payload (INLINE) or is the key of the message (SEPARATED).
Source: ``KeyValueSchemaInfo`` and ``KeyValue`` of Pulsar 4.2 (``org.apache.pulsar.client.impl.schema``,
``org.apache.pulsar.common.schema``); for the definition what ``GET …/schemas`` answers.
"""  # noqa: E501

import json
from dataclasses import replace
from typing import Any

import numpy as np

from reader.errors import UnsupportedError
from reader.kernels.array_types import Bools, Bytes, Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo


def two_schemas(info: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo, bool]:
    """The schemas of key and value, and whether they are SEPARATED.

    The REST API gives the definition as ``{"key": …, "value": …}``, each the schema's own JSON or
    "" for a primitive; types, properties and encoding are properties. Raises UnsupportedError for
    anything else.
    """
    try:
        definition = json.loads(info.definition)
        if info.encoding not in ("INLINE", "SEPARATED"):
            raise ValueError(f"no such encoding: {info.encoding}")
        key, value = (_half(info, definition[half], half) for half in ("key", "value"))
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise UnsupportedError(f"not a KeyValue schema: {type(error).__name__} {error}") from error
    return key, value, info.encoding == "SEPARATED"


def _half(info: SchemaInfo, definition: Any, half: str) -> SchemaInfo:
    kind = info.properties.get(f"{half}.schema.type") or "BYTES"
    properties = json.loads(info.properties.get(f"{half}.schema.properties") or "{}")
    if not isinstance(properties, dict):
        raise ValueError(f"the properties of the {half} are not an object")
    text = "" if definition == "" else json.dumps(definition, ensure_ascii=False)
    return replace(info, type=kind.upper(), definition=text, properties=properties)


def split(
    spans: ByteSpans, rows: Int64s
) -> tuple[ByteSpans, ByteSpans, dict[int, str], dict[int, str]]:
    """Return (keys, values, malformed, trailing) of the INLINE payloads ``rows``.

    A payload is ``[i32 length, key, i32 length, value]``, big-endian, with a length of -1 for null.
    keys, values: one each row; a malformed payload has neither. malformed, trailing: the problem of
    each malformed payload, and of each payload with bytes after its value, by row.
    """
    some = spans.take(rows)
    key_starts, key_ends, key_bad = _field(some.data, some.starts, some.ends, some.present)
    starts, ends, bad = _field(some.data, key_ends, some.ends, some.present & ~key_bad)
    bad |= key_bad
    malformed = {int(row): "malformed KeyValue: a length is out of range" for row in rows[bad]}
    good = some.present & ~bad
    late = good & (ends < some.ends)
    trailing = {int(row): "malformed KeyValue: bytes follow the value" for row in rows[late]}
    keys = ByteSpans(some.data, key_starts, key_ends, good & (key_starts >= 0))
    values = ByteSpans(some.data, starts, ends, good & (starts >= 0))
    return _plain(keys), _plain(values), malformed, trailing


def _field(data: Bytes, at: Int64s, ends: Int64s, present: Bools) -> tuple[Int64s, Int64s, Bools]:
    """Start (-1: null) and end of the field at ``at``, and whether a present one is malformed."""
    starts, stops = np.full(len(at), -1, np.int64), np.array(at)
    some = np.flatnonzero(present & (ends - at >= 4))
    raw = data[at[some][:, None] + np.arange(4)[None, :]]
    lengths = np.ascontiguousarray(raw).view(">i4")[:, 0].astype(np.int64)
    good = (lengths >= -1) & (at[some] + 4 + lengths <= ends[some])
    some, lengths = some[good], lengths[good]
    starts[some] = np.where(lengths >= 0, at[some] + 4, -1)
    stops[some] = at[some] + 4 + np.maximum(lengths, 0)
    bad = np.array(present)
    bad[some] = False
    return starts, stops, bad


def _plain(spans: ByteSpans) -> ByteSpans:
    """With empty spans where nothing is present, as an Arrow array has them."""
    starts = np.where(spans.present, spans.starts, 0)
    return ByteSpans(spans.data, starts, np.where(spans.present, spans.ends, 0), spans.present)
