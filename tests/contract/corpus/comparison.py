"""A topic's rows beside what was published and what the Java client reads."""

import base64
import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from reader.model.columns import METADATA_NAMES
from reader.model.row_kinds import RowKind
from testbed.oracle import Json
from tests.contract.corpus import Kind, Place
from tests.contract.java import metadata_of, without_order
from tests.contract.rows import KEY_COLUMNS, Key, Row, keyed, plain


def expected_rows(kind: Kind, place: Place, java: Mapping[Key, Json]) -> dict[Key, Row]:
    """Return all columns of all rows of a topic, in the form that rows are compared in.

    Raises AssertionError if the Java client reads other messages than were published.
    """
    assert len(java) == kind.rows, "the Java client reads another number of messages"
    unread = place.known.keys() - java.keys()
    assert not unread, ("published, but not read by the Java client", unread)
    found = {}
    for key, message in java.items():
        row = metadata_of(message, place.topic) | kind.payload(message)
        row |= place.known.get(key, {})
        assert row["__index"] is not None, "the broker of the tests counts messages"
        found[key] = {name: without_order(plain(value)) for name, value in row.items()}
        assert row.keys() >= set(METADATA_NAMES)
    return found


def ordered(table: pa.Table) -> pa.Table:
    """Return the rows in the order of their keys."""
    return table.sort_by([(name, "ascending") for name in KEY_COLUMNS]) if len(table) else table


def check_rows(kind: Kind, place: Place, expected: Mapping[Key, Row], found: list[Row]) -> None:
    """Compare every column of every row. Raises AssertionError with the first that differs."""
    rows = keyed(found)
    strays = {key for key, row in rows.items() if row["__kind"] == RowKind.UNMATCHED}
    assert sorted(strays) == sorted(place.strays), "rows of chunks whose message is incomplete"
    missing = expected.keys() - rows.keys()
    assert not missing, ("rows are missing", sorted(missing))
    more = rows.keys() - expected.keys() - strays
    assert not more, ("rows that nobody published", sorted(more))
    for key, wanted in expected.items():
        names = [name for name in rows[key] if name in METADATA_NAMES]
        assert names == list(METADATA_NAMES), "the order of columns"
        ours = {name: without_order(value) for name, value in rows[key].items()}
        if kind.config != "plain":
            _as_java_knows(ours)
        assert ours.keys() == wanted.keys(), key
        wrong = {
            name: f"{ours[name]!r} instead of {wanted[name]!r}"
            for name in ours
            if ours[name] != wanted[name]
        }
        # In the order that was published: Java's client has an order of its own.
        wrong |= {
            name: f"{rows[key][name]!r} instead of {value!r}"
            for name, value in place.known.get(key, {}).items()
            if rows[key][name] != value
        }
        assert not wrong, (key, wrong)


def _as_java_knows(row: dict[str, Any]) -> None:
    """Take out what the Java client does not tell of an entry that it has decrypted.

    That is the metadata of a message in a batch, the order of keys, and whether a size of 0 is
    given.
    """
    context = row["__encryptionContext"]
    if context is not None:
        members = dict(context)
        del members["metadata"]
        members["keys"].sort(key=lambda key: dict(key)["name"])
        members["uncompressedSize"] = members["uncompressedSize"] or None
        row["__encryptionContext"] = without_order(plain(members))


def from_json(row: Json, schema: pa.Schema) -> Row:
    """Return a row that Spark's `to_json` has written, with values as Arrow gives them."""
    return {column.name: _value(row.pop(column.name), column.type) for column in schema} | row


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {member.name: _value(value[member.name], member.type) for member in kind}
    if pa.types.is_map(kind):
        return [(name, _value(item, kind.item_type)) for name, item in value.items()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_value(item, kind.value_type) for item in value]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return base64.b64decode(value)
    if pa.types.is_timestamp(kind):
        return dt.datetime.fromisoformat(value)
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_float32(kind):
        return float(np.float32(value))
    return float(value) if pa.types.is_floating(kind) else value
