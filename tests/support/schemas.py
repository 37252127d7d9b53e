"""Definitions of Avro records."""

from collections.abc import Mapping
from typing import Any


def avro_record(name: str, types: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a record with fields of these types. ``more``: between its name and its fields."""
    fields = [{"name": field, "type": kind} for field, kind in types.items()]
    return {"type": "record", "name": name, **more, "fields": fields}
