"""Whether columns of one type can be read as columns of another. Pure."""

import pyarrow as pa


def is_compatible(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether values of ``old`` can be read as ``new``: the same, or structs that have grown."""
    return same_type(old, new) or has_grown(old, new)


def same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Equal types, whatever nested fields are called by the format and if they may be NULL."""
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        left, right = ([kind.field(i) for i in range(kind.num_fields)] for kind in (one, other))
        return [f.name for f in left] == [f.name for f in right] and all(
            same_type(a.type, b.type) for a, b in zip(left, right, strict=True)
        )
    if pa.types.is_map(one) and pa.types.is_map(other):
        return same_type(one.key_type, other.key_type) and same_type(one.item_type, other.item_type)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return same_type(one.value_type, other.value_type)
    return bool(one == other)


def has_grown(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether ``new`` is ``old`` with more members in its structs, and nothing else."""
    if same_type(old, new):
        return False
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        after = {field.name: field.type for field in new}
        return all(
            field.name in after
            and (
                same_type(field.type, after[field.name]) or has_grown(field.type, after[field.name])
            )
            for field in old
        )
    if pa.types.is_map(old) and pa.types.is_map(new):
        return same_type(old.key_type, new.key_type) and has_grown(old.item_type, new.item_type)
    if pa.types.is_list(old) and pa.types.is_list(new):
        return has_grown(old.value_type, new.value_type)
    return False
