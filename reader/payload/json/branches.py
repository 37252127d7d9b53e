"""Which branches of a union may take a JSON value: the others need not be tried.

A record of columns takes a value if its columns do. A record that becomes JSON text has no columns,
so an object is compared with the record's schema: otherwise the first such branch would take the
objects of all others.

Columns take more than their types have: that of an enum any text, as later versions may have other
symbols, that of an int 64 bits, that of a record objects without some of its fields. Between two
branches the first would get the values of the other, so each is asked first for what is of its own
type.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union
from reader.payload.column_types import Layout, Leaf, Struct, layout_of, mapped_union
from reader.payload.json.numbers import SPECIAL, Number, exact_integer
from reader.payload.json.scalars import scalar

_UUID = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_GREATEST_FLOAT = (2 - 2**-23) * 2.0**127
Check = Callable[[Any], bool]


class Branches:
    """Which branches of a union may take a value, by its type and the names of its members.

    The others are not tried: most unions are of records that have names of their own.
    """

    def __init__(self, branches: Sequence[Node], layouts: Sequence[Layout]) -> None:
        self._of_type: dict[type, int] = {}
        self._of_name: dict[str, int] = {}
        self._of_any_name = 0
        for i, branch in enumerate(branches):
            for kind in _python_types(branch):
                self._of_type[kind] = self._of_type.get(kind, 0) | 1 << i
            # A record that becomes text takes any names.
            if isinstance(branch, Record) and isinstance(layouts[i], Struct):
                for name, _ in branch.fields:
                    self._of_name[name] = self._of_name.get(name, 0) | 1 << i
            else:
                self._of_any_name |= 1 << i

    def candidates(self, value: Any) -> Iterator[int]:
        """Indices, ascending."""
        found = self._of_type.get(type(value), 0)
        if type(value) is dict:
            for name in value:
                if not found:
                    return
                found &= self._of_name.get(name, 0) | self._of_any_name
        while found:
            lowest = found & -found
            yield lowest.bit_length() - 1
            found ^= lowest


def _python_types(node: Node) -> tuple[type, ...]:
    """Of the values that a branch may take."""
    match node:
        case Record() | Map() | Ref():
            return (dict,)
        case Array():
            return (list,)
        case Primitive(kind="boolean"):
            return (bool,)
        case Enum() | Primitive(kind="string"):
            return (str,)
    return (str, Number)  # base64, and names of numbers that are none


class RecordTexts:
    """Tells whether a JSON object is a value of a record, by the rules of a union's columns.

    ``records``: the records that a `Ref` names. ``visit`` is called with each value, and may raise
    an error that ends the comparison.
    """

    def __init__(self, records: Mapping[str, Record], visit: Callable[[Any], None]) -> None:
        self._records, self._visit = records, visit
        # By a node's id, with the node, so that no other one gets its id.
        self._checks: dict[int, tuple[Node, Check]] = {}
        # Of a union and an object or array: between two branches nothing is compared twice.
        self._known: dict[tuple[int, int], bool] = {}
        self._own = False

    def takes(self, node: Record | Ref, value: dict[str, Any], *, own: bool) -> bool:
        """Return whether ``value`` is one of the record, at any depth.

        ``own``: whether it has to be of the types themselves (`is_own`), or as columns take it.
        """
        self._known.clear()
        self._own = own
        return self._check(node)(value)

    def _check(self, node: Node) -> Check:
        if isinstance(node, Ref):
            node = self._records[node.name]
        found = self._checks.get(id(node))
        if found is None:
            found = self._checks[id(node)] = (node, self._made(node))
        return found[1]

    def _made(self, node: Node) -> Check:
        """Return a function of a value that is not null. Two calls a level: JSON may be deep."""
        match node:
            case Union():
                return self._union(node)
            case Record(fields=()):
                return lambda value: type(value) is dict
            case Record():
                return self._record(dict(node.fields), required_fields(node))
            case Map():
                return self._items(dict, node.values)
            case Array():
                return self._items(list, node.items)
            case Primitive(kind="null"):
                return lambda value: False
            case Enum() | Fixed() | Primitive():
                return self._leaf(node)
        raise AssertionError(f"{node} has no values")

    def _leaf(self, node: Enum | Fixed | Primitive) -> Check:
        layout = layout_of(node)
        assert isinstance(layout, Leaf)
        first_form, own = scalar(node, layout).first_form, is_own(node)

        def check(value: Any) -> bool:
            self._visit(value)
            if first_form(value) is None:
                return False
            return own is None or not self._own or own(value)

        return check

    def _union(self, node: Union) -> Check:
        branches = mapped_union(node)
        if len(branches) == 1:
            return self._check(branches[0])

        def check(value: Any) -> bool:
            place = (id(node), id(value)) if isinstance(value, dict | list) else None
            known = self._known.get(place) if place else None
            if known is None:
                known = False
                for branch in branches:
                    if self._check(branch)(value):
                        known = True
                        break
                if place:
                    self._known[place] = known
            return known

        return check

    def _record(self, fields: Mapping[str, Node], required: Sequence[str]) -> Check:
        def check(value: Any) -> bool:
            self._visit(value)
            if type(value) is not dict or not value.keys() <= fields.keys():
                return False
            if self._own and any(value.get(name) is None for name in required):
                return False
            for name, item in value.items():
                if item is not None and not self._check(fields[name])(item):
                    return False
            return True

        return check

    def _items(self, kind: type[dict[str, Any]] | type[list[Any]], node: Node) -> Check:
        nullable = has_null(node)

        def check(value: Any) -> bool:
            self._visit(value)
            if type(value) is not kind:
                return False
            for item in value.values() if isinstance(value, dict) else value:
                if item is None:
                    if self._own and not nullable:
                        return False
                elif not self._check(node)(item):
                    return False
            return True

        return check


def is_own(node: Enum | Fixed | Primitive) -> Callable[[Any], bool] | None:
    """Return a function that tells whether a value that the column of ``node`` takes by its first
    form is one of ``node``; None: each is.
    """
    match node:
        case Enum():
            symbols = frozenset(node.symbols)
            return lambda value: value in symbols
        case Fixed(logical="uuid") | Primitive(logical="uuid"):
            return lambda value: _UUID.fullmatch(value) is not None
        case Fixed(logical=None):
            # Base64 of so many bytes has one length and one end.
            groups, rest = divmod(node.size, 3)
            length, padding = 4 * (groups + bool(rest)), (3 - rest) % 3
            return lambda value: len(value) == length and value.count("=") == padding
        case Primitive(kind="int", logical=None):
            return lambda value: type(value) is Number and exact_integer(value.text, 32) is not None
        case Primitive(kind="float", logical=None):
            return _is_float
    return None


def _is_float(value: Any) -> bool:
    if type(value) is not Number or value.text in SPECIAL:
        return True
    return abs(float(value.text)) <= _GREATEST_FLOAT


def required_fields(record: Record) -> tuple[str, ...]:
    """Return the names of the fields whose type has no null."""
    return tuple(name for name, node in record.fields if not has_null(node))


def has_null(node: Node) -> bool:
    """Return whether null is a value of the type."""
    branches = node.branches if isinstance(node, Union) else (node,)
    return any(isinstance(one, Primitive) and one.kind == "null" for one in branches)
