"""The rows, made up from a seed in columns: a shop's events, and a sensor's readings.

The same seed and number give the same rows, whatever the size of the chunks asked for. Sessions,
scores and links are random, so rows do not compress to nothing; users and products follow a power
law, kinds and countries are skewed. `entropy` says how many bits each field carries.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_CHUNK = 20_000
_START = 1_767_225_600_000  # 2026-01-01, ms
_STEP = 40  # ms between two rows

_KINDS = pa.array(["view", "search", "cart", "order", "payment", "return"])
_COUNTRIES = pa.array(
    "DE FR US GB NL PL IT ES SE AT CH BE CZ DK NO FI IE PT GR HU".split()  # noqa: SIM905
)
_SYSTEMS = pa.array(["Android", "iOS", "Windows", "macOS", "Linux"])
_STATES = pa.array(["ok", "late", "low", "fault"])

Random = np.random.Generator


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of row. `schema`: Avro, which the JSON messages follow, too."""

    schema: dict[str, Any]
    make: Callable[[Random, int, int], pa.RecordBatch]
    """From a generator, the first row's number and a count."""

    def batches(self, rows: int, seed: int) -> Iterator[pa.RecordBatch]:
        """`rows` rows, numbered by `id` from 0."""
        random = np.random.default_rng(seed)
        for first in range(0, rows, _CHUNK):
            # Always whole chunks, so that fewer rows are the beginning of more.
            yield self.make(random, first, _CHUNK).slice(0, min(_CHUNK, rows - first))


def _record(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field, "type": kind} | ({"default": None} if isinstance(kind, list) else {})
            for field, kind in fields.items()
        ],
    }


def _hex(random: Random, count: int, size: int) -> pa.Array:
    return pa.array(random.bytes(size * count).hex(" ", size).split())


def _power(random: Random, exponent: float, count: int, most: int) -> Any:
    return random.zipf(exponent, count) % most


def _text(*pieces: Any) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, "")


def _digits(numbers: Any, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _times(random: Random, ids: Any) -> pa.Array:
    return pa.array(_START + ids * _STEP + random.integers(0, _STEP, len(ids)))


def _events(random: Random, first: int, count: int) -> pa.RecordBatch:
    ids = np.arange(first, first + count)
    country = _COUNTRIES.take(pa.array(_power(random, 1.5, count, len(_COUNTRIES))))
    build = random.integers(0, 40, count)
    agent = _text(
        "Mozilla/5.0 Shop/",
        pa.array(build // 10).cast(pa.string()),
        ".",
        pa.array(build % 10).cast(pa.string()),
        ".0 (",
        _SYSTEMS.take(pa.array(random.integers(0, len(_SYSTEMS), count))),
        "; build ",
        pa.array(build).cast(pa.string()),
        "; rv:1",
        _digits(build, 2),
        ".0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36",
    )
    return pa.record_batch(
        {
            "id": pa.array(ids),
            "at": _times(random, ids),
            "user": pa.array(_power(random, 1.3, count, 100_000)),
            "session": _hex(random, count, 32),
            "kind": _KINDS.take(
                pa.array(random.choice(len(_KINDS), count, p=[0.55, 0.2, 0.12, 0.06, 0.05, 0.02]))
            ),
            "country": country,
            "cents": pa.array(random.lognormal(8, 1, count).astype(np.int64)),
            "score": pa.array(random.random(count).round(12)),
            "url": _text(
                "https://www.shop.example/",
                country,
                "/p/sku-",
                _digits(_power(random, 1.2, count, 50_000), 6),
                "?utm_source=newsletter&utm_medium=mail&ref=",
                _hex(random, count, 28),
            ),
            "agent": pc.if_else(pa.array(random.random(count) < 0.95), agent, None),
        }
    )


def _readings(random: Random, first: int, count: int) -> pa.RecordBatch:
    ids = np.arange(first, first + count)
    return pa.record_batch(
        {
            "id": pa.array(ids),
            "at": _times(random, ids),
            "sensor": _text("sensor-", _digits(_power(random, 1.2, count, 5_000), 4)),
            "value": pa.array(random.normal(20, 5, count).round(4)),
            "state": _STATES.take(pa.array(random.choice(4, count, p=[0.94, 0.03, 0.02, 0.01]))),
            "trace": _hex(random, count, 10),
        }
    )


EVENT = Kind(
    _record(
        "Event",
        {
            "id": "long",
            "at": "long",
            "user": "long",
            "session": "string",
            "kind": "string",
            "country": "string",
            "cents": "long",
            "score": "double",
            "url": "string",
            "agent": ["null", "string"],
        },
    ),
    _events,
)
"""Ten fields, about 450 bytes as JSON."""

READING = Kind(
    _record(
        "Reading",
        {
            "id": "long",
            "at": "long",
            "sensor": "string",
            "value": "double",
            "state": "string",
            "trace": "string",
        },
    ),
    _readings,
)
"""Six fields, about 115 bytes as JSON."""


def entropy(rows: pa.RecordBatch) -> dict[str, float]:
    """Bits a value carries, field by field, as counted in these rows (at most log2 of them)."""
    found = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        counts = np.asarray(pc.value_counts(column).field("counts"))
        shares = counts / counts.sum()
        found[name] = abs(float(-(shares * np.log2(shares)).sum()))
    return found
