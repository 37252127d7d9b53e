"""A shop's events, made up from a seed: about 450 bytes each as JSON.

The same seed and number give the same rows. Sessions and links are random, so rows do not
compress to nothing; users and products follow a power law, countries and kinds are skewed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.cluster.publish import Message

__all__ = ["SCHEMA", "entropy", "events"]

_CHUNK = 20_000
_START = 1_767_225_600_000  # 2026-01-01, ms
_STEP = 40  # ms between two events

_KINDS = ["view", "search", "cart", "order", "payment", "return"]
_COUNTRIES = "DE FR US GB NL PL IT ES SE AT CH BE CZ DK NO FI IE PT GR HU".split()  # noqa: SIM905
_SYSTEMS = ["Android", "iOS", "Windows", "macOS", "Linux"]

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "user", "type": "long"},
        {"name": "session", "type": "string"},
        {"name": "trace", "type": "string"},
        {"name": "kind", "type": "string"},
        {"name": "product", "type": "string"},
        {"name": "quantity", "type": "int"},
        {"name": "cents", "type": "long"},
        {"name": "country", "type": "string"},
        {"name": "city", "type": ["null", "string"], "default": None},
        {
            "name": "device",
            "type": {
                "type": "record",
                "name": "Device",
                "fields": [
                    {"name": "system", "type": "string"},
                    {"name": "version", "type": "string"},
                    {"name": "agent", "type": "string"},
                ],
            },
        },
        {"name": "url", "type": "string"},
        {"name": "referrer", "type": ["null", "string"], "default": None},
        {"name": "score", "type": "double"},
    ],
}
"""As Avro; also what the JSON messages follow."""


def events(rows: int, seed: int) -> Iterator[Message]:
    """Messages with the user as key and `at` as event time."""
    random = np.random.default_rng(seed)
    for start in range(0, rows, _CHUNK):
        yield from _chunk(random, start, min(_CHUNK, rows - start))


def _chunk(random: np.random.Generator, start: int, count: int) -> Iterator[Message]:
    ids = np.arange(start, start + count)
    columns = zip(
        ids.tolist(),
        (_START + ids * _STEP + random.integers(0, _STEP, count)).tolist(),
        (random.zipf(1.3, count) % 100_000).tolist(),
        random.bytes(16 * count).hex(" ", 16).split(),
        random.bytes(8 * count).hex(" ", 8).split(),
        random.choice(_KINDS, count, p=[0.55, 0.2, 0.12, 0.06, 0.05, 0.02]).tolist(),
        (random.zipf(1.2, count) % 50_000).tolist(),
        random.integers(1, 6, count).tolist(),
        random.lognormal(8, 1, count).astype(np.int64).tolist(),
        (random.zipf(1.5, count) % len(_COUNTRIES)).tolist(),
        random.integers(0, 600, count).tolist(),
        random.integers(0, len(_SYSTEMS), count).tolist(),
        random.integers(0, 40, count).tolist(),
        random.bytes(6 * count).hex(" ", 6).split(),
        random.random(count).round(6).tolist(),
        strict=True,
    )
    for row in columns:
        yield _message(*row)


def _message(
    number: int,
    at: int,
    user: int,
    session: str,
    trace: str,
    kind: str,
    product: int,
    quantity: int,
    cents: int,
    country: int,
    city: int,
    system: int,
    version: int,
    reference: str,
    score: float,
) -> Message:
    name, release = _SYSTEMS[system], f"{version // 10}.{version % 10}.0"
    agent = f"Shop/{release} ({name}; build {version}; like a browser) Engine/1{version:02d}.0"
    value = {
        "id": number,
        "at": at,
        "user": user,
        "session": session,
        "trace": trace,
        "kind": kind,
        "product": f"sku-{product:06d}",
        "quantity": quantity,
        "cents": cents,
        "country": _COUNTRIES[country],
        "city": f"city-{city:03d}" if city < 500 else None,
        "device": {"system": name, "version": release, "agent": agent},
        "url": f"https://shop.example/{_COUNTRIES[country]}/p/sku-{product:06d}?ref={reference}",
        "referrer": "https://search.example/" if city % 3 == 0 else None,
        "score": score,
    }
    return Message(value, key=str(user), event_time=at)


def entropy(values: list[dict[str, Any]]) -> dict[str, float]:
    """Bits a value carries, field by field, as counted in these rows (at most log2 of them)."""
    found = {}
    for name in values[0]:
        counts = Counter(str(value[name]) for value in values)
        found[name] = -sum(
            count / len(values) * math.log2(count / len(values)) for count in counts.values()
        )
    return found
