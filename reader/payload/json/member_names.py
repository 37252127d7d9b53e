"""Names of members in JSON: which field of a record each is, and which records are map entries."""

from collections.abc import Collection, Iterable

from reader.model.column_names import name_key
from reader.payload.avro_schema import Array, Record

_PAIR = "org.apache.avro.reflect.Pair"


class MemberNames:
    """The fields of a record by names in another case, as Go and Jackson may write them."""

    def __init__(self, by_key: dict[str, str]) -> None:
        self._by_key = by_key

    def renamed(self, names: Collection[str]) -> dict[str, str]:
        """Return the field of each of an object's ``names`` that is a field in another case.

        A name is no field if another of the object's names may be the same field.
        """
        found: dict[str, list[str]] = {}
        for name in names:
            field = self._by_key.get(name_key(name))
            if field is not None:
                found.setdefault(field, []).append(name)
        return {same[0]: field for field, same in found.items() if len(same) == 1}

    @property
    def keys(self) -> dict[str, str]:
        """The fields by `name_key`, except those that are another's name in another case."""
        return self._by_key


def member_names(fields: Iterable[str]) -> MemberNames:
    """Those of ``fields`` that are no other's name in another case."""
    by_key: dict[str, list[str]] = {}
    for field in fields:
        by_key.setdefault(name_key(field), []).append(field)
    return MemberNames({key: found[0] for key, found in by_key.items() if len(found) == 1})


def pair_members(node: Array) -> Record | None:
    """Return the record of key and value if ``node`` is a Java map, or None.

    Avro's reflection makes a map whose keys are no strings an array of such records. Jackson
    writes an object.
    """
    items = node.items
    if not isinstance(items, Record) or not items.name.startswith(_PAIR):
        return None
    return items if [name for name, _ in items.fields] == ["key", "value"] else None
