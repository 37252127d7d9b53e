"""Which member of a union's column takes the values of which branch.

A branch is known by its type, not by its place, because a union may grow in front or be reordered.
A record, an enum or a fixed type is known by its name: two records may have the same fields.
"""

from collections.abc import Callable, Mapping, Sequence

from reader.payload.avro_schema import PRIMITIVES, Node
from reader.payload.column_types import (
    JSON_TEXT,
    Layout,
    ListOf,
    MapOf,
    Member,
    Struct,
    accepts,
    branch_name,
    layout_of,
)

_UNNAMED = PRIMITIVES | {"array", "map", "union"}


def union_member(layout: Layout, node: Node) -> Member | None:
    """Return the member of a union's column that takes values of ``node``, or None."""
    if not isinstance(layout, Struct) or not layout.union:
        return None
    alone = Struct((Member(branch_name(node), "", layout_of(node)),), union=True)
    found = union_targets(layout, alone)[0]
    return found if isinstance(found, Member) else None


def member_pairs(
    known: Mapping[str, Member], natural: Struct
) -> list[tuple[Member, Member | None]]:
    """Return each member of ``natural`` with the one of ``known`` that takes its values.

    Fields of a record are found by name, branches of a union by type. ``known``: the members of a
    column by name, of a union's column if ``natural`` is a union.
    """
    if natural.union:
        found = _members(tuple(known.values()), natural.members)
    else:
        found = [known.get(member.name) for member in natural.members]
    return list(zip(natural.members, found, strict=True))


def union_targets(layout: Layout | None, branches: Struct) -> list[Member | Layout | None]:
    """Return for each branch of a union where its values go.

    That is a member of the column, if the column is a union's; the column itself, if it is of the
    branch's kind; or None.
    """
    if layout is None:
        return [None] * len(branches.members)
    if not isinstance(layout, Struct) or not layout.union:
        taken = [b for b in branches.members if accepts(layout, b.layout) or _is_cut(layout, b)]
        if isinstance(layout, Struct) and len(taken) > 1:
            taken = _of_record(layout.record, taken)
        return [layout if b in taken else None for b in branches.members]
    return list(_members(layout.members, branches.members))


def _of_record(record: str, branches: Sequence[Member]) -> list[Member]:
    """Return the one of several records that a column is for: by full name, then simple name."""
    same = [branch for branch in branches if branch.name == record]
    similar = [branch for branch in branches if _simple(branch.name) == _simple(record)]
    return same or (similar if len(similar) == 1 else [])


def _members(known: Sequence[Member], branches: Sequence[Member]) -> list[Member | None]:
    """Return the member for each branch: by full name, then simple name, then kind of value.

    Of several branches each has values of one kind alone, as all others can have members of their
    own. A type without a union has no other place than a member that holds its values exactly.
    """
    remaining = {member.name: member for member in known}
    found: list[Member | None] = [None] * len(branches)
    rules: tuple[Callable[[Member, Member], bool], ...] = (
        lambda member, branch: member.name == branch.name and _fits(member, branch),
        lambda member, branch: _same_simple_name(member, branch) and _fits(member, branch),
        lambda member, branch: _by_kind(member, branch) and _same(member.layout, branch.layout),
        lambda member, branch: _by_kind(member, branch) and _fits(member, branch),
    )
    for rule in rules if len(branches) == 1 else rules[:3]:
        for i, branch in enumerate(branches):
            if found[i] is not None:
                continue
            # Hundreds of branches each ask hundreds of members: the name is looked up first.
            own = remaining.get(branch.name)
            some = remaining.values() if rule is not rules[0] else [own] if own else []
            taken = next((member for member in some if rule(member, branch)), None)
            if taken is not None:
                found[i] = remaining.pop(taken.name)
    return found


def _fits(member: Member, branch: Member) -> bool:
    return accepts(member.layout, branch.layout) or _is_cut(member.layout, branch)


def _is_cut(layout: Layout, branch: Member) -> bool:
    """Return whether a branch is a record that is text only because its schema was cut.

    The values go to the struct, whose members say how far the record is read (`expanded`).
    """
    return isinstance(layout, Struct) and not layout.union and branch.layout == JSON_TEXT


def _named(member: Member) -> bool:
    return member.name.partition(" ")[0] not in _UNNAMED


def _same_simple_name(member: Member, branch: Member) -> bool:
    """Return whether two named types differ by their namespace alone."""
    if not (_named(member) and _named(branch)):
        return False
    return _simple(member.name) == _simple(branch.name)


def _simple(name: str) -> str:
    """Return a full name without its namespace."""
    return name.rpartition(".")[2]


def _by_kind(member: Member, branch: Member) -> bool:
    """Return whether the kind of value decides: two named types differ by their names alone."""
    return not (_named(member) and _named(branch))


def _same(layout: Layout, natural: Layout) -> bool:
    """Return whether two branches are one: of records, lists and maps the members may differ."""
    match layout, natural:
        case Struct(), Struct():
            return layout.union == natural.union
        case ListOf(), ListOf():
            return _same(layout.item, natural.item)
        case MapOf(), MapOf():
            return _same(layout.value, natural.value)
    return layout == natural
