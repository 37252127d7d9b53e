"""Writes python.jsonl: what records of Pulsar's Python client register, and how they are written.

    python python_records.py > python.jsonl

Payloads are text (JSON) or base64 (AVRO). A record more in `ROWS` is two lines more.
"""

import base64
import json
from enum import Enum

from pulsar.schema import (
    Array,
    AvroSchema,
    Boolean,
    Bytes,
    CustomEnum,
    Double,
    Float,
    Integer,
    JsonSchema,
    Long,
    Map,
    Record,
    String,
)


class Colour(Enum):
    RED = 1
    GREEN = 2


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Inner(Record):  # type: ignore[misc]
    a = Integer()


class Everything(Record):  # type: ignore[misc]
    flag = Boolean()
    small = Integer()
    big = Long()
    narrow = Float()
    wide = Double()
    text = String()
    items = Array(Inner())
    numbers = Map(Integer())
    inner = Inner()
    nothing = String()


class Paint(Record):  # type: ignore[misc]
    colour = CustomEnum(Colour)
    size = CustomEnum(Size)


class Reading(Record):  # type: ignore[misc]
    a = Double()
    b = Double()
    c = Double()


class Blob(Record):  # type: ignore[misc]
    n = Integer()
    raw = Bytes()


ROWS = [
    Everything(
        flag=True,
        small=-1,
        big=1 << 60,
        narrow=0.5,
        wide=1e100,
        text='ä "x"\n',
        items=[Inner(a=1)],
        numbers={"k": 5},
        inner=Inner(a=2),
    ),
    Paint(colour=Colour.GREEN, size=Size.SMALL),
    Reading(a=float("nan"), b=float("inf"), c=float("-inf")),
    Blob(n=1, raw=b"test"),
    Blob(n=2, raw=b""),
]


def main() -> None:
    for row in ROWS:
        for schema in (JsonSchema(type(row)), AvroSchema(type(row))):
            info, payload = schema.schema_info(), schema.encode(row)
            text = isinstance(schema, JsonSchema)
            line = {
                "name": f"python {type(row).__name__} {len(payload)} {'JSON' if text else 'AVRO'}",
                "type": "JSON" if text else "AVRO",
                "schema": info.schema(),
                "payload": payload.decode() if text else base64.b64encode(payload).decode(),
            }
            print(json.dumps(line, ensure_ascii=False))


if __name__ == "__main__":
    main()
