"""Unions of an Avro schema: their branches, and which of a struct's members is set."""

import numpy as np
import pyarrow as pa

from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.arrow_columns.matching import members_of
from reader.kernels.array_types import Bytes
from reader.payload.avro_schema import Fixed, Node, Primitive, Record, Ref, Union, non_null
from reader.payload.column_types import Struct, arrow_type


def null_index(node: Node) -> int | None:
    """Which branch is null, 0 for null alone; None where NULL cannot be."""
    if isinstance(node, Union):
        found = (i for i, one in enumerate(node.branches) if null_index(one) == 0)
        return next(found, None)
    return 0 if isinstance(node, Primitive) and node.kind == "null" else None


def branch_of(union: Union, wanted: Node) -> int:
    """The place of a branch that `mapped_union` gives: of int and long it is long."""
    # Two enums or fixed types may be equal but for their names.
    same = (i for i, branch in enumerate(union.branches) if branch is wanted)
    found = next(same, None)
    return union.branches.index(wanted) if found is None else found


def type_name(node: Node) -> str:
    """As the schema names the type."""
    match node:
        case Union():
            return f"union of {', '.join(type_name(branch) for branch in non_null(node)[:5])}"
        case Primitive(logical="decimal") | Fixed(logical="decimal"):
            return f"decimal({node.precision},{node.scale})"
        case Primitive():
            return node.logical or node.kind
        case Fixed():
            return node.logical or f"fixed({node.size})"
        case Record() | Ref():
            return f"record {node.name}"
    return type(node).__name__.lower()


def only_null(elements: Elements) -> None:
    """Raises ConfigurationError where one is not."""
    valid = elements.valid()
    some = np.ones(len(elements), np.bool_) if valid is None else valid != 0
    elements.fail_if(some, "is not NULL, which is all that its field takes")


def chosen_members(
    elements: Elements, layout: Struct, has_null: bool
) -> tuple[dict[str, Elements], Bytes | None]:
    """(the members, each live where it is set; where none is, None if that is nowhere).

    Raises ConfigurationError where several are set, or none and the union has no null.
    """
    if not pa.types.is_struct(elements.type):
        raise elements.refuse("union", arrow_type(layout))
    members = members_of(elements, layout, elements.present())
    column = {member.name: member.column for member in layout.members}
    chosen: dict[str, Elements] = {}
    count = np.zeros(len(elements), np.int64)
    for name, member in members.items():
        some = member.present()
        live = np.ones(len(elements), np.uint8) if some is None else some
        count += live
        chosen[name] = Elements(member.array, member.path, live, member.row_of)

    def several(i: int) -> str:
        names = [column[name] for name, member in chosen.items() if member.live is not None
                 and member.live[i]]  # fmt: skip
        return f"has {' and '.join(names)} set, and a union takes one"

    elements.fail_if(count > 1, several)
    unset = (count == 0).astype(np.uint8)
    if elements.live is not None:
        unset &= elements.live
    if not has_null:
        hint = "set one of its members"
        elements.fail_if(
            unset != 0, "has no member set, and the union has no null", hint=hint, even_null=True
        )
    return chosen, unset if unset.any() else None
