"""Which branches of a union may take a JSON value: the others need not be tried.

A record of columns takes a value if its columns do. A record that becomes JSON text has no columns,
so an object is compared with the record's schema: otherwise the first such branch would take the
objects of all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union
from reader.payload.column_types import Layout, Leaf, Struct, layout_of, mapped_union
from reader.payload.json.numbers import Number
from reader.payload.json.scalars import scalar

__all__ = ["Branches", "RecordTexts"]

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

    def takes(self, node: Record | Ref, value: dict[str, Any]) -> bool:
        """Return whether ``value`` is one of the record, at any depth."""
        self._known.clear()
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
                return self._record(dict(node.fields))
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
        first_form = scalar(node, layout).first_form

        def check(value: Any) -> bool:
            self._visit(value)
            return first_form(value) is not None

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

    def _record(self, fields: Mapping[str, Node]) -> Check:
        def check(value: Any) -> bool:
            self._visit(value)
            if type(value) is not dict or not value.keys() <= fields.keys():
                return False
            for name, item in value.items():
                if item is not None and not self._check(fields[name])(item):
                    return False
            return True

        return check

    def _items(self, kind: type[dict[str, Any]] | type[list[Any]], node: Node) -> Check:
        def check(value: Any) -> bool:
            self._visit(value)
            if type(value) is not kind:
                return False
            for item in value.values() if isinstance(value, dict) else value:
                if item is not None and not self._check(node)(item):
                    return False
            return True

        return check
