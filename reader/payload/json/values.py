"""One JSON payload to column values, in Python: the reference, which `kernel` has to equal.

Follows Jackson as Pulsar's JSONSchema configures it. Fields that are null may be left out; a union
has no wrapper. Bytes are base64, enums are names, NaN and the infinities are strings. What the
columns would not reproduce is a problem: unknown fields, wrong types, numbers out of range or
precision, duplicate keys.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union
from reader.payload.budget import UNBOUNDED, OutputBudget, json_nesting, text_bytes, value_bytes
from reader.payload.column_types import (
    Layout,
    Leaf,
    ListOf,
    MapOf,
    Member,
    Missing,
    Struct,
    arrow_type,
    inner_path,
    label,
    layout_of,
    mapped_union,
    mismatch,
)
from reader.payload.json.branches import Branches, RecordTexts, has_null, is_own, required_fields
from reader.payload.json.member_names import member_names, pair_members
from reader.payload.json.numbers import SPECIAL, Number
from reader.payload.json.scalars import scalar, utf8
from reader.payload.json.time_forms import CUT, Cut
from reader.payload.remembered.conversions import read_as, takes
from reader.payload.remembered.union_members import union_member, union_targets

# Python's parser stops at its own recursion limit, which depends on the caller: stay below.
MAX_JSON_DEPTH = 256
# What a value takes in Python, with its literal.
VALUE_BYTES = 128
# Steps, besides one for each character: of a branch that is tried and of each value, of each piece
# of a text that is written, of each digit, and of each member or item, null or not.
_VISIT, _PIECE, _DIGIT, _ENTRY = 16, 8, 4, 2
INDENTED = b'{\n "'
"""How a payload begins that the JsonSchema of Pulsar's Python client wrote: its bytes are text."""
DOUBTFUL = "is base64 or text: set pulsar.json_bytes for the topic"

Convert = Callable[[Any], Any]


class JsonReader:
    """Reads messages of one schema version.

    ``columns``: the payload columns as a struct, which takes long to make of many columns.
    ``root`` is a record whose fields are members of ``layout``; with a ``member_name`` it is any
    type, and each payload is that member. ``records``: the records that a `Ref` names.
    """

    def __init__(
        self,
        version: int,
        root: Node,
        columns: pa.StructType,
        layout: Struct,
        member_name: str | None = None,
        budget: OutputBudget = UNBOUNDED,
        records: Mapping[str, Record] | None = None,
    ) -> None:
        self._version = version
        self._budget = budget
        self._texts = RecordTexts(records or {}, self._visit)
        self._room = self._steps = 0
        # Unions within which a value is being read, and whether the branch that is tried takes
        # only what is of its own type (`branches.is_own`), not all that its column takes.
        self._trying = 0
        self._own = False
        self._problems: list[str] = []
        self._duplicate: str | None = None
        self._indented = False
        self._convert = self._root(root, columns, layout, member_name)
        self._decoder = json.JSONDecoder(
            parse_float=Number,
            parse_int=Number,
            parse_constant=Number,
            object_pairs_hook=self._object,
        )

    def read(self, payload: bytes) -> tuple[dict[str, Any] | None, str | None, int]:
        """(value by column, or None if nothing could be read; problem or None; bytes of them).

        Values are what ``pyarrow.array`` takes for the column's type.
        """
        self._problems, self._duplicate = [], None
        self._indented = payload.startswith(INDENTED)
        if text_bytes(payload, escapes=True, enough=self._budget.message) > self._budget.message:
            return None, f"more than {self._budget.message} bytes of text", 0
        try:
            text = payload.decode("utf-8")
        except UnicodeDecodeError:
            return None, "not UTF-8", 0
        most = self._budget.message // VALUE_BYTES
        opened = text.count("[") + text.count("{")
        if opened > MAX_JSON_DEPTH or opened + text.count(",") + text.count(":") > most:
            depth, count = json_nesting(text)
            if depth > MAX_JSON_DEPTH:
                return None, "nested too deeply", 0
            if count > most:
                return None, f"more than {most} values", 0
        try:
            value = self._decoder.decode(text)
        except ValueError as error:
            return None, f"not JSON: {error}", 0
        self._room = limit = self._budget.of_message(len(payload))
        self._steps = steps = self._budget.steps(len(payload))
        self._trying, self._own = 0, False
        try:
            values: dict[str, Any] | None = self._convert(value)
        except _TooLargeError:
            return None, f"more than {limit} bytes of columns", 0
        except _TooSlowError:
            return None, f"more than {steps} steps to find the branches of its unions", 0
        if self._duplicate is not None:
            self._problems.append(f"duplicate key {shown(self._duplicate)}")
        size = 2 * (limit - self._room + len(payload))
        return values, self._problems[0] if self._problems else None, size

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise _TooLargeError

    def _root(
        self, root: Node, real: pa.StructType, layout: Struct, member_name: str | None
    ) -> Convert:
        if member_name is not None:
            member = layout.member(member_name)
            assert member is not None
            column, inner = member.column, _member_type(real, member.column)
            whole = self._value(root, member.layout, inner, label(member_name))
            return lambda value: {column: None if value is None else whole(value)}
        assert isinstance(root, Record)
        members = self._members(root, layout, real, "")

        def convert(value: Any) -> dict[str, Any] | None:
            if type(value) is dict:
                found: dict[str, Any] = members(value)
                return found
            self._problem("not a JSON object")
            return None

        return convert

    def _visit(self, value: Any) -> None:
        self._steps -= _steps(value)
        if self._steps < 0:
            raise _TooSlowError

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs) and self._duplicate is None:
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self._duplicate = key
                    break
                seen.add(key)
        return value

    def _problem(self, what: str) -> None:
        # A branch that has one is not read on: the value is that of another branch, or none.
        if self._trying:
            raise _MismatchError
        self._problems.append(what)

    def _fail(self, path: str, what: str) -> None:
        self._problem(f"field {shown(path)} {what}")

    def _value(self, node: Node, layout: Layout, real: pa.DataType | None, path: str) -> Convert:
        """A function of a parsed value that is not null, for a column of type ``real``."""
        if isinstance(node, Union):
            return self._union(node, layout, real, path)
        if isinstance(node, Primitive) and node.kind == "null":
            return lambda value: self._fail(path, "is not null")
        own = is_own(node) if isinstance(node, Enum | Fixed | Primitive) else None
        node = read_as(node, layout)
        if not takes(layout, node):
            member = union_member(layout, node)
            if member is not None:
                inner = _member_type(real, member.column)
                read = self._value(node, member.layout, inner, path)
                return lambda value: {member.column: read(value)}
            what = mismatch(layout, layout_of(node), self._version)
            return lambda value: self._fail(path, what)
        match node, layout:
            case Record(), Struct():
                return self._record(node, layout, real, path)
            case Record() | Ref(), _:
                return self._text(node, path)
            case Array(), ListOf():
                return self._array(node, layout, real, path)
            case Map(), MapOf():
                return self._map(node, layout, real, path)
            case Enum() | Fixed() | Primitive(), Leaf():
                return self._scalar(node, layout, path, own)
        raise AssertionError(f"{node} does not go to {layout}")

    def _checked(self, kind: type, convert: Convert, path: str, what: str) -> Convert:
        """``convert`` for values of ``kind``; None from it is a value that does not fit, too."""

        def checked(value: Any) -> Any:
            found = None
            if type(value) is kind:
                self._steps -= _steps(value)
                found = convert(value)
            if found is None:
                self._fail(path, what)
            return found

        return checked

    def _text(self, node: Record | Ref, path: str) -> Convert:
        """Return a function of an object that returns its JSON text.

        A record without fields is a Java class that Avro knows nothing of, like Object and Date:
        any value is one, where no branch has to be chosen. Where one has to be, an object has to
        be a value of the record.
        """
        of_anything = isinstance(node, Record) and not node.fields

        def convert(value: Any) -> str | None:
            self._steps -= _steps(value)
            found = None
            if self._trying:
                takes = type(value) is dict and self._texts.takes(node, value, own=self._own)
            else:
                takes = of_anything or type(value) is dict
            if takes:
                parts: list[str] = []
                if _write(value, parts):
                    text = "".join(parts)
                    self._steps -= len(text) + _PIECE * len(parts)
                    found = utf8(text)
            if found is None:
                self._fail(path, "is not JSON text" if of_anything else "is not an object")
            return found

        return convert

    def _members(self, node: Record, layout: Struct, real: pa.StructType, path: str) -> Convert:
        members = {}
        known_members = layout.by_name()
        for name, child in node.fields:
            member = known_members.get(name)
            where = inner_path(path, name)
            found = Missing("has no column") if member is None else member.layout
            column = name if member is None else member.column
            inner = _member_type(real, column)
            members[name] = (column, self._value(child, found, inner, where))
        others, required = member_names(members), required_fields(node)

        def convert(value: dict[str, Any]) -> dict[str, Any]:
            # Of a record within a branch: nothing is read to see that it has other names.
            if self._trying and not value.keys() <= members.keys():
                raise _MismatchError
            if self._own and any(value.get(name) is None for name in required):
                raise _MismatchError
            found = {}
            renamed: dict[str, str] | None = None
            for name, item in value.items():
                known = members.get(name)
                if known is None:
                    renamed = others.renamed(value) if renamed is None else renamed
                    known = members.get(renamed.get(name, ""))
                if known is None:
                    self._problem(f"unknown field {shown(f'{path}.{name}' if path else name)}")
                elif item is not None:
                    found[known[0]] = known[1](item)
            return found

        return convert

    def _record(self, node: Record, layout: Struct, real: pa.StructType, path: str) -> Convert:
        members = self._members(node, layout, real, path)
        return self._checked(dict, members, path, "is not an object")

    def _array(self, node: Array, layout: ListOf, real: pa.ListType, path: str) -> Convert:
        item = self._value(node.items, layout.item, real.value_type, f"{path}[]")
        size, nullable = value_bytes(real.value_type), has_null(node.items)
        pairs = pair_members(node)
        pair = None
        if pairs is not None and isinstance(layout.item, Struct):
            pair = self._members(pairs, layout.item, real.value_type, f"{path}[]")

        def convert(value: Any) -> list[Any] | None:
            self._steps -= _steps(value)
            if type(value) is list:
                self._take(size * len(value))
                if self._own and not nullable and None in value:
                    raise _MismatchError
                return [None if v is None else item(v) for v in value]
            if type(value) is dict and pair is not None and not self._trying:
                self._take(size * len(value))
                return [pair({"key": k, "value": v}) for k, v in value.items()]
            self._fail(path, "is not an array")
            return None

        return convert

    def _map(self, node: Map, layout: MapOf, real: pa.MapType, path: str) -> Convert:
        item = self._value(node.values, layout.value, real.item_type, f"{path}[]")
        size = value_bytes(real.key_type) + value_bytes(real.item_type)
        nullable = has_null(node.values)

        def convert(value: dict[str, Any]) -> list[tuple[str, Any]] | None:
            self._take(size * len(value))
            self._steps -= sum(map(len, value))
            if self._own and not nullable and None in value.values():
                raise _MismatchError
            if any(utf8(key) is None for key in value):
                return None
            return [(k, None if v is None else item(v)) for k, v in value.items()]

        return self._checked(dict, convert, path, "is not an object of Unicode keys")

    def _union(self, node: Union, layout: Layout, real: pa.DataType | None, path: str) -> Convert:
        """The first branch that has the value, else the only one whose column takes it."""
        branches = mapped_union(node)
        if len(branches) < 2:
            only = branches[0] if branches else Primitive("null")
            return self._value(only, layout, real, path)
        choices: list[tuple[str | None, Convert, str | None]] = []
        natural = layout_of(node)
        assert isinstance(natural, Struct)
        layouts = [member.layout for member in natural.members]
        for i, target in enumerate(union_targets(layout, natural)):
            column, why, kind = None, None, real
            if isinstance(target, Member):
                column, layouts[i] = target.column, target.layout
                kind = _member_type(real, column)
            elif target is not None:
                layouts[i] = target
            else:  # it is read all the same: its value is not that of another branch
                why, kind = mismatch(layout, layouts[i], self._version), arrow_type(layouts[i])
            choices.append((column, self._value(branches[i], layouts[i], kind, path), why))
        forms = Branches(branches, layouts)

        def convert(value: Any) -> Any:
            room, outer = self._room, self._own
            taken: list[tuple[int, Any, int]] = []
            self._trying += 1
            for own in (True,) if outer else (True, False):
                self._own = own
                for i in forms.candidates(value):
                    self._steps -= _VISIT
                    # Asked only here: between two branches nothing is read twice.
                    if self._steps < 0:
                        raise _TooSlowError
                    self._room = room
                    try:
                        taken.append((i, choices[i][1](value), self._room))
                    except _MismatchError:
                        continue
                    if own or len(taken) > 1:
                        break
                if taken:
                    break
            self._trying -= 1
            self._own = outer
            if len(taken) != 1:
                self._fail(
                    path, f"matches {'several branches' if taken else 'no branch'} of its union"
                )
                return None
            ((i, found, self._room),) = taken
            column, _, why = choices[i]
            if why is not None:
                self._fail(path, why)
                return None
            return found if column is None else {column: found}

        return convert

    def _scalar(
        self,
        node: Enum | Fixed | Primitive,
        layout: Leaf,
        path: str,
        own: Callable[[Any], bool] | None,
    ) -> Convert:
        forms = scalar(node, layout)
        wide = layout.tag == "decimal" and layout.type == pa.string()
        doubtful = node == Primitive("bytes")

        def convert(value: Any) -> Any:
            self._steps -= _steps(value)
            found = forms.first_form(value)
            if found is None and not self._trying:
                found = forms.other_forms(value)
            elif found is not None and self._own and own is not None and not own(value):
                raise _MismatchError
            if type(found) is Cut:
                self._fail(path, CUT)
                return found.value
            if found is None:
                self._fail(path, forms.failure)
            elif doubtful and found and self._indented:
                self._fail(path, DOUBTFUL)
                return None
            elif wide:  # with all digits behind the point, whatever the number is
                self._take(len(found))
            return found

        return convert


class _TooLargeError(Exception):
    """The columns of a message would take more than its budget."""


class _TooSlowError(Exception):
    """A message's unions would take more steps than its budget."""


class _MismatchError(Exception):
    """A branch does not take the value."""


def _member_type(real: pa.StructType, column: str) -> pa.DataType | None:
    index = real.get_field_index(column)
    return real.field(index).type if index >= 0 else None


def shown(name: str) -> str:
    """A name from a message, as a problem quotes it: short, printable, valid Unicode."""
    return ascii(name) if len(name) <= 80 else ascii(name[:77] + "...")


def _steps(value: Any) -> int:
    """Return the steps that reading ``value`` takes, without its members or items."""
    if type(value) is str:
        return _VISIT + len(value)
    if type(value) is Number:
        return _VISIT + _DIGIT * len(value.text)
    return _VISIT + (_ENTRY * len(value) if type(value) in (dict, list) else 0)


def _write(value: Any, parts: list[str]) -> bool:
    """Append the text of ``value``. Return False if JSON has no text for a number in it."""
    if type(value) is Number:
        parts.append(value.text)
        return value.text not in SPECIAL
    if type(value) is dict:
        comma = "{"
        for key, item in value.items():
            parts.append(f"{comma}{_quoted(key)}:")
            if not _write(item, parts):
                return False
            comma = ","
        parts.append("}" if value else "{}")
    elif type(value) is list:
        comma = "["
        for item in value:
            parts.append(comma)
            if not _write(item, parts):
                return False
            comma = ","
        parts.append("]" if value else "[]")
    else:
        parts.append(_quoted(value))
    return True


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
