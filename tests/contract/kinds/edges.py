"""Payloads at the edge of what a schema's type holds, and beyond it."""

import datetime as dt
import struct
from typing import Any

from testbed.oracle import Json
from tests.contract.kinds import Case, Row, Write, raw, stated, typed

_LATE = 253_402_300_799  # the last second of the year 9999

_ROWS: dict[str, list[tuple[bytes, Any, bool]]] = {
    "STRING": [(b"\xc3\xbc", "ü", False), (b"a\xff", None, True), (b"\x00", "\x00", False)],
    "BOOLEAN": [(b"\x01", True, False), (b"\x00", False, False), (b"\x01\x01", None, True)],
    "INT32": [(b"\x7f\xff\xff\xff", 2**31 - 1, False), (b"\x00\x00\x01", None, True)],
    "DOUBLE": [(struct.pack(">d", 5e-324), 5e-324, False), (b"", None, True)],
    "TIMESTAMP": [
        (struct.pack(">q", _LATE * 1000), dt.datetime(9999, 12, 31, 23, 59, 59), False),
        (struct.pack(">q", 2**63 - 1), None, True),
    ],
    "INSTANT": [
        (struct.pack(">qi", 9_223_372_035, 999_999_999), 9_223_372_035_999_999_999, False),
        (struct.pack(">qi", _LATE, 0), None, True),  # beyond 64-bit nanoseconds
        (struct.pack(">qi", 0, -1), None, True),
    ],
    "LOCAL_DATE": [
        (struct.pack(">q", 2_932_896), dt.date(9999, 12, 31), False),
        (struct.pack(">q", 2**31), None, True),
    ],
    "LOCAL_TIME": [(struct.pack(">q", 86_400_000_000_000), None, True)],
    "LOCAL_DATE_TIME": [
        (struct.pack(">qq", 106_750, 1), 106_750 * 86_400 * 10**9 + 1, False),
        (struct.pack(">qq", 2_932_896, 0), None, True),
    ],
}


def _primitive(kind: str) -> Case:
    rows: list[tuple[bytes, Row | None, bool]] = [
        (payload, {"value": value}, rescued) for payload, value, rescued in _ROWS[kind]
    ]
    payloads = [payload for payload, _, _ in rows]
    writes = [
        Write(raw({"type": kind}), payloads),
        Write(raw({"type": kind}), payloads, {"batch": 9}),
    ]
    return Case(f"edges-{kind.lower()}", writes, stated(rows), tiers=Case.tiers[:-1])


def _not_a_record(name: str, definition: Any, rows: dict[bytes, Any]) -> Case:
    """What the client's AUTO_CONSUME does not read: it takes records alone."""
    bytes_schema: Json = {"type": "BYTES"}
    found: list[tuple[bytes, Row | None, bool]] = [
        (payload, {"value": value}, False) for payload, value in rows.items()
    ]
    return Case(
        f"avro-{name}",
        [Write(raw(typed("AVRO", definition)), list(rows))],
        stated(found),
        schema=bytes_schema,
    )


CASES = [
    *(_primitive(kind) for kind in _ROWS),
    _not_a_record("text", '"string"', {b"\x04hi": "hi", b"\x00": ""}),
    _not_a_record("array", {"type": "array", "items": "long"}, {b"\x04\x02\x04\x00": [1, 2]}),
]
