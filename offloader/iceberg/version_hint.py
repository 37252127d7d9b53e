"""The pointer to a table's newest metadata, for readers without a catalog.

``metadata/version-hint.text`` has the name of the newest metadata file without its end, as
PyIceberg and DuckDB read it. It follows the catalog: written after the commit, and again where it
is not what the catalog says.
"""

from reader.storage import Storage


def point(storage: Storage, directory: str, metadata: str) -> bool:
    """Make the pointer of a metadata directory name a metadata file; whether it did not.

    directory: a path below the storage's root.
    metadata: the file's location.

    Raises UnavailableError.
    """
    objects, path = storage.objects(), f"{directory}/version-hint.text"
    text = metadata.rpartition("/")[2].removesuffix(".metadata.json")
    found = objects.get(path)
    if found is not None and found.decode(errors="replace").strip() == text:
        return False
    objects.put(path, text.encode())
    return True
