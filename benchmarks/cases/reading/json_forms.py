"""CPU a row of the decoder, for JSON payloads in the forms of other clients (docs/types.md).

No servers: payloads are made and decoded in this process. The same values in the schema's own form
are decoded in turn, and both have to give the same columns.
"""

from __future__ import annotations

import json
import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.case import Bench, Case
from benchmarks.measure import BrokenCaseError, Contender, Result, paired, take_turns
from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo
from reader.payload import PayloadDecoder, payload_fields

__all__ = ["CASES"]

_ROWS, _QUICK_ROWS = 200_000, 5_000
_BLOCK = 10_000
"""As many rows as a block of the reader has, about."""
_START = 1_700_000_000_000_000

Row = Mapping[str, Any]
Text = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the same values.

    fields: the schema's fields for both forms, unless `own_fields` are those of the plain form.
    plain, other: the members of row n, as JSON writes them.
    """

    fields: Mapping[str, Any]
    plain: Text
    other: Text
    own_fields: Mapping[str, Any] | None = None


def _logical(kind: str, logical: str) -> dict[str, str]:
    return {"type": kind, "logicalType": logical}


def _times(number: int) -> tuple[int, int, int]:
    """Return seconds since 1970, microseconds of that second, and the day."""
    seconds, micros = divmod(_START + number * 1_234_567, 1_000_000)
    return seconds, micros, seconds // 86_400


def _plain_times(number: int) -> str:
    seconds, micros, day = _times(number)
    of_day = seconds % 86_400 * 1_000_000 + micros
    return f'"at":{seconds * 1_000_000 + micros},"day":{day},"time":{of_day}'


def _jackson_times(number: int) -> str:
    seconds, micros, day = _times(number)
    date = np.datetime64(day, "D").astype(object)
    hour, minute, second = seconds // 3600 % 24, seconds // 60 % 60, seconds % 60
    return (
        f'"at":{seconds}.{micros:06}000,"day":[{date.year},{date.month},{date.day}],'
        f'"time":[{hour},{minute},{second},{micros * 1000}]'
    )


def _iso_times(number: int) -> str:
    seconds, micros, _ = _times(number)
    text = str(np.datetime64(seconds * 1_000_000 + micros, "us"))
    return f'"at":"{text}Z","day":"{text[:10]}","time":"{text[11:]}"'


def _event(number: int, names: tuple[str, ...], quote: str = "") -> str:
    values = (f"{quote}{number}{quote}", f"{quote}{number / 8}{quote}", f'"user-{number % 977}"')
    return ",".join(f'"{name}":{value}' for name, value in zip(names, values, strict=True))


_TIME_FIELDS = {
    "at": _logical("long", "timestamp-micros"),
    "day": _logical("int", "date"),
    "time": _logical("long", "time-micros"),
}
_EVENT_FIELDS: Mapping[str, Any] = {"id": "long", "score": "double", "user": "string"}
_NAMES = ("id", "score", "user")
_OBJECT = {"type": "record", "name": "Object", "fields": []}
_plain_event: Text = partial(_event, names=_NAMES)


def _tagged(number: int, value: str) -> str:
    return f'{_plain_event(number)},"tag":{value}'


_FORMS: Mapping[str, Form] = {
    "java.time as Jackson writes it": Form(_TIME_FIELDS, _plain_times, _jackson_times),
    "dates and times in ISO 8601": Form(_TIME_FIELDS, _plain_times, _iso_times),
    "Object": Form(
        {**_EVENT_FIELDS, "tag": _OBJECT},
        lambda number: _tagged(number, f'"{{\\"a\\":[{number},null]}}"'),
        lambda number: _tagged(number, f'{{"a":[{number},null]}}'),
        {**_EVENT_FIELDS, "tag": "string"},
    ),
    "numbers in quotes": Form(
        _EVENT_FIELDS, _plain_event, partial(_event, names=_NAMES, quote='"')
    ),
    "names in another case, as Go writes them": Form(
        _EVENT_FIELDS, _plain_event, partial(_event, names=("ID", "Score", "User"))
    ),
    "an unknown field in each row": Form(
        _EVENT_FIELDS,
        lambda number: _tagged(number, f'"{number % 977}"'),
        lambda number: _tagged(number, f'"{number % 977}"'),
        {**_EVENT_FIELDS, "tag": "string"},
    ),
}


def _run(bench: Bench) -> list[Result]:
    return [result for name, form in _FORMS.items() for result in _of_form(bench, name, form)]


def _of_form(bench: Bench, name: str, form: Form) -> list[Result]:
    rows = _QUICK_ROWS if bench.quick else _ROWS
    all_columns = _decoded(form.own_fields or form.fields, form.plain, rows)
    other = _decoded(form.fields, form.other, rows)

    def plain() -> pa.Table:
        return all_columns().select(list(form.fields))

    columns = plain()
    spent = take_turns(
        {"plain": Contender(plain, columns), "other": Contender(other, columns)},
        bench.repeats,
        clock=time.process_time,
    )
    each = {which: [one / rows * 1e9 for one in taken] for which, taken in spent.items()}
    ratio = paired(spent["other"], spent["plain"], operator.truediv)
    return [
        bench.result(f"{name}: the plain form", "CPU ns/row", each["plain"]),
        bench.result(name, "CPU ns/row", each["other"]),
        bench.result(f"{name}: of the plain form", "x", ratio),
    ]


def _decoded(fields: Mapping[str, Any], text: Text, rows: int) -> Callable[[], pa.Table]:
    """Return a function that decodes the payloads of `rows` rows, a block at a time."""
    listed = [{"name": name, "type": ["null", kind]} for name, kind in fields.items()]
    definition = json.dumps({"type": "record", "name": "Row", "fields": listed})
    schemas = [SchemaInfo(0, "JSON", definition, {})]
    columns = payload_fields(schemas)
    decoder = PayloadDecoder(schemas, columns)
    blocks = [
        ByteSpans.of(pa.array([f"{{{text(n)}}}".encode() for n in block], pa.large_binary()))
        for block in (range(at, min(at + _BLOCK, rows)) for at in range(0, rows, _BLOCK))
    ]

    def run() -> pa.Table:
        made = []
        for spans in blocks:
            decoded = decoder.decode(spans, np.zeros(len(spans), np.int64))
            if decoded.count < len(spans):
                raise BrokenCaseError(f"{decoded.count} of {len(spans)} payloads were decoded")
            made.append(pa.RecordBatch.from_arrays([*decoded.arrays.values()], schema=columns))
        return pa.Table.from_batches(made)

    return run


CASES = (
    Case("json_forms", "CPU a row to decode JSON in the forms that other clients write", _run),
)
