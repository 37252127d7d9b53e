"""A topic whose schema changes, and rows that are written by position and read again.

Each value says which field it is of, so a value in another column, or the default of another
field, shows.
"""

import json
from random import Random
from typing import Any

from reader.payload import payload_fields
from tests.unit.spark.planner.test_sink_columns import World

_NAMES = ("a", "A", "b", "c", "a_2", "value", "i", "\u0131", "s", "\u017f")
_TEXT = ["null", "string"]


def write_and_read(seed: int) -> None:
    """Raise AssertionError if a row is read otherwise than it was written."""
    random = Random(seed)
    world = _world(random)
    read, target = world.read, world.target
    assert target.fields is not None
    assert target.columns.names == read.names, seed
    newest = {field["name"]: field for field in _fields(world)}
    filled = {member.column: member.name for member in target.fields.layout.members}
    _check_defaults(target, newest, filled, seed)
    # INSERT by position: the writer goes by the columns as the topic is read.
    row = {
        name: _value(newest[filled[name]], filled[name], random) if name in filled else None
        for name in read.names
    }
    values = dict(zip(target.columns.names, row.values(), strict=True))
    found = world.again({name: value for name, value in values.items() if name in filled})
    expected = {name: value for name, value in row.items() if name in filled}
    assert {name: found[name] for name in filled} == expected, (seed, found, expected)
    # By name, in any order, and without some: these have their own field's default, or NULL.
    given = [
        name
        for name in filled
        if random.random() < 0.6 or not _can_be_omitted(newest[filled[name]])
    ]
    random.shuffle(given)
    if not given:
        return
    found = world.again({name: row[name] for name in given})
    for name, field in filled.items():
        if name not in given:
            assert found[name] == _omitted(newest[field]), (seed, name, found)


def _world(random: Random) -> World:
    fields: list[dict[str, Any]] = []
    known: dict[str, dict[str, Any]] = {}
    versions = []
    for _ in range(random.randint(1, 4)):
        fields = _changed(fields, known, random)
        versions.append({"type": "record", "name": "R", "fields": fields})
    table = payload_fields([]) if random.random() < 0.2 else None
    return World(*versions, table=table)


def _changed(
    fields: list[dict[str, Any]], known: dict[str, dict[str, Any]], random: Random
) -> list[dict[str, Any]]:
    """Return the fields of the next version: some are new, at any place, and some are removed.

    known: all fields that there have been. A field that comes again has the type that it had.
    """
    kept = [field for field in fields if random.random() < 0.85]
    names = {field["name"] for field in kept}
    for name in random.sample(_NAMES, random.randint(1, 3)):
        if name not in names:
            field = known.setdefault(name, _field(name, random))
            kept.insert(random.randint(0, len(kept)), field)
    return kept


def _field(name: str, random: Random) -> dict[str, Any]:
    match random.randrange(4):
        case 0:
            return {"name": name, "type": "string", "default": f"default of {name}"}
        case 1:
            inner = [{"name": one, "type": _TEXT} for one in random.sample(["x", "y", "z"], 3)]
            nested = {"type": "record", "name": f"R{ord(name[0])}{len(name)}", "fields": inner}
            return {"name": name, "type": ["null", nested], "default": None}
    return {"name": name, "type": _TEXT, "default": None}


def _fields(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(world.versions[-1].definition)["fields"]
    return found


def _is_record(field: dict[str, Any]) -> bool:
    return isinstance(field["type"], list) and isinstance(field["type"][1], dict)


def _value(field: dict[str, Any], name: str, random: Random) -> Any:
    if _is_record(field):
        return {one["name"]: f"{name}.{one['name']}" for one in field["type"][1]["fields"]}
    return f"{name} {random.randrange(100)}"


def _can_be_omitted(field: dict[str, Any]) -> bool:
    return "default" in field


def _omitted(field: dict[str, Any]) -> Any:
    return field["default"]


def _check_defaults(
    target: Any, newest: dict[str, dict[str, Any]], filled: dict[str, str], seed: int
) -> None:
    expected = {
        column: newest[name]["default"]
        for column, name in filled.items()
        if newest[name].get("default") is not None
    }
    assert target.defaults() == expected, seed
