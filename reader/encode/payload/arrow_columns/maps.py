"""Maps: their keys, each there once, and their values."""

import numpy as np
import pyarrow as pa

from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.arrow_columns.leaves import is_text, text
from reader.encode.payload.row_writer.blocks import Spans
from reader.encode.payload.row_writer.kernel import first_twice
from reader.kernels.array_types import Int64s

Entries = tuple[Elements, Elements, Int64s]


def entries(elements: Elements, field: str, takes: pa.DataType) -> Entries:
    """(keys, values, the offsets of each map in them).

    Raises ConfigurationError where a map has a key twice, or NULL for one.
    """
    real = elements.type
    if not pa.types.is_map(real) or not is_text(real.key_type):
        raise elements.refuse(field, takes)
    pairs, offsets = elements.items()
    names = Elements(pairs.array.field(0), elements.path, pairs.live, pairs.row_of)
    names.require("a map's key")
    keys = text(names, field)
    no_key_twice(elements, keys, offsets)
    return names, Elements(pairs.array.field(1), pairs.path, pairs.live, pairs.row_of), offsets


def no_key_twice(elements: Elements, keys: Spans, offsets: Int64s) -> None:
    """Raise ConfigurationError for the first of ``elements`` that has two equal ``keys``."""
    most = int(np.diff(offsets).max(initial=0))
    if most < 2:
        return
    spans = np.stack([keys.starts, keys.ends], axis=1)
    table = np.empty(4 * most + 4, np.int64)
    present = elements.present()
    live = np.ones(len(elements), np.uint8) if present is None else present
    first = first_twice(keys.data, spans, offsets, live, table)
    if first >= 0:
        elements.fail(first, "has the same key twice")
