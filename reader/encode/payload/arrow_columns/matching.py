"""Which column goes to which field of the schema, at every depth."""

from collections.abc import Sequence

from reader.encode.payload.arrow_columns.elements import Elements, spark_type
from reader.errors import ConfigurationError
from reader.kernels.array_types import Bytes
from reader.model.column_names import name_key
from reader.payload.column_types import Member, Struct, inner_path


def members_of(elements: Elements, layout: Struct, live: Bytes | None) -> dict[str, Elements]:
    """The members of a struct by the names of their fields; without those that have no column.

    Names are compared as Spark does; no two columns of a schema are the same name. Raises
    ConfigurationError for a member that the schema does not have, or has taken already.
    """
    by_key = {name_key(member.column): member for member in layout.members}
    found: dict[str, Elements] = {}
    for i, field in enumerate(elements.type):
        path = inner_path(elements.path, field.name)
        member = by_key.get(name_key(field.name))
        if member is None:
            raise ConfigurationError(
                f"column {path!r} ({spark_type(field.type)}) is not in the schema of the topic",
                hint=_fields(layout.members),
                context={"column": path},
            )
        if member.name in found:
            raise ConfigurationError(
                f"column {path!r} is there twice: names do not differ by case alone",
                hint="drop or rename one of the two",
                context={"column": path},
            )
        found[member.name] = elements.member(i, member.column, live)
    return found


def missing_column(path: str, field: str) -> ConfigurationError:
    """The error of a field that has no column and needs one."""
    return ConfigurationError(
        f"field {path!r} of the schema ({field}) has no column, and neither a default nor null",
        hint=f"add a column {path!r}",
        context={"column": path},
    )


def _fields(members: Sequence[Member]) -> str:
    names = [member.column for member in members]
    some = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return f"its fields are {some}" if some else "it has no fields"
