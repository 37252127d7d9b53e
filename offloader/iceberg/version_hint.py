"""The pointer to a table's newest metadata, for readers without a catalog.

``metadata/version-hint.text`` is what Iceberg's own tables in directories have: the number N of
``vN.metadata.json``. Of catalogs that name their metadata otherwise it has the file's name without
its end, as PyIceberg and DuckDB read it.

It follows the catalog: written after the commit, and again where it is not what the catalog says.
"""

from __future__ import annotations

import re

from reader.storage import Storage

__all__ = ["METADATA_END", "VERSION_HINT", "hint_text", "point", "pointed_at"]

VERSION_HINT = "version-hint.text"
METADATA_END = ".metadata.json"
_NUMBERED = re.compile(r"v(\d+)")


def hint_text(metadata: str) -> str:
    """What the pointer says of a metadata file, by its name or location."""
    name = metadata.rpartition("/")[2].removesuffix(METADATA_END)
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else name


def pointed_at(storage: Storage, directory: str) -> str:
    """The pointer's text in a metadata directory, a path below the root; "" where there is none.

    Raises UnavailableError.
    """
    data = storage.objects().get(f"{directory}/{VERSION_HINT}")
    return "" if data is None else data.decode(errors="replace").strip()


def point(storage: Storage, directory: str, metadata: str) -> bool:
    """Make it point at a metadata file; whether it did not. Raises UnavailableError."""
    text = hint_text(metadata)
    if pointed_at(storage, directory) == text:
        return False
    storage.objects().put(f"{directory}/{VERSION_HINT}", text.encode())
    return True
