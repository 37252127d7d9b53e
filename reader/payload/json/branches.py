"""Which branches of a union may take a JSON value: the others need not be tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reader.payload.avro_schema import Array, Enum, Map, Node, Primitive, Record, Ref
from reader.payload.column_types import Layout, Struct
from reader.payload.json.numbers import Number

__all__ = ["Branches"]


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
