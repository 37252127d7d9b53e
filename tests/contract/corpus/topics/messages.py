"""Kinds of messages by the Java client: keys, nulls, times, partitions, and markers."""

from collections.abc import Iterator

from testbed.oracle import Json
from tests.contract.corpus import Kind, Place

FAR = 4_102_444_800_000  # 2100-01-01, in ms

KEYS: list[Json] = [
    {"value": b"no key"},
    {"value": b"null key", "key": None},
    {"value": b"empty key", "key": ""},
    {"value": b"key", "key": "k"},
    {"value": b"key", "key": "schlüssel \U0001f680"},
    {"value": b"bytes", "key_bytes": b"\x00\xff"},
    {"value": b"empty bytes", "key_bytes": b""},
    {"value": b"ordering", "ordering_key": b"o"},
    {"value": b"both", "key": "k", "ordering_key": b"o"},
    {"value": None},
    {"value": None, "key": "k"},
    {"value": None, "key": ""},
    {"value": b""},
    {"value": b"", "key": "k"},
    {"value": b"properties", "properties": {"a": "", "": "b", "ü": "ö"}},
    {"value": b"times", "event_time": 1},
    {"value": b"times", "event_time": 1_700_000_000_123},
    {"value": b"sequence", "sequence_id": 1000},
    {"value": b"sequence", "sequence_id": 2000},
]


def _keys(to: Place) -> Iterator[None]:
    """Every batching with every compression."""
    for batch in (0, 1, 2, 100):
        for compression in ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"):
            to.write(KEYS, batch=batch, compression=compression, producer="größe")
        if batch == 1:
            yield


def _ordering_keys(to: Place) -> Iterator[None]:
    """Ordering keys that are no text."""
    keys = [b"\xff\x00", b"", b"o", b"\x80"]
    messages: list[Json] = [{"value": b"x", "ordering_key": key} for key in keys]
    to.write(messages)
    to.write(messages, batch=2)
    yield from ()


def _deliver_at(to: Place) -> Iterator[None]:
    messages: list[Json] = [{"value": b"x", "deliver_at": at} for at in (1, 1_700_000_000_123, FAR)]
    to.write([*messages, {"value": b"now"}])
    yield from ()


def _partitions(to: Place) -> Iterator[None]:
    for batch in (0, 4):
        messages: list[Json] = [{"value": str(n).encode(), "key": f"k{n}"} for n in range(40)]
        to.write(messages, batch=batch)
        if not batch:
            yield


def _replicated(to: Place) -> Iterator[None]:
    """As a replicator sends them, one by one: the tests have one cluster."""
    names = ["west", None, "öst"]
    keys = to.write([{"value": b"x", "replicated_from": name, "key": "k"} for name in names])
    to.known |= {key: {"__replicatedFrom": name} for key, name in zip(keys, names, strict=True)}
    yield from ()


def _markers(to: Place) -> Iterator[None]:
    """Those of replicated subscriptions, which one cluster has not: entries, but no messages."""
    message: Json = {"value": b"x", "key": "k"}
    markers: list[Json] = [{"value": b"", "marker_type": kind} for kind in (10, 11, 13)]
    to.write([message, *markers[:2], message, markers[2]])
    yield
    to.write([message] * 3, batch=2)


KINDS = [
    Kind("größe", 20 * len(KEYS), _keys, halves=True, twice=True),
    Kind("ordering-keys", 8, _ordering_keys, twice=True),
    Kind("deliver-at", 4, _deliver_at, twice=True),
    Kind("partitions", 80, _partitions, partitions=3, halves=True, twice=True),
    Kind("replicated", 3, _replicated, twice=True),
    Kind("markers", 5, _markers, halves=True, twice=True),
]
