"""All rows of an Iceberg table by DuckDB: ``{"table": directory, "out": file}``."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb

NEVER = ("autoinstall_known_extensions", "autoload_known_extensions")


def extension(name: str) -> Path:
    """As it is in the package: nothing is fetched."""
    found = find_spec(f"duckdb_extension_{name}")
    assert found is not None
    assert found.origin is not None
    [file] = Path(found.origin).parent.rglob(f"{name}.duckdb_extension")
    return file


def main() -> None:
    given = json.loads(sys.argv[1])
    with duckdb.connect() as connection:
        for name in NEVER:
            connection.execute(f"SET {name} = false")
        for name in ("avro", "iceberg"):
            connection.execute(f"LOAD '{extension(name)}'")
        rows = f"SELECT * FROM iceberg_scan('{given['table']}')"
        connection.execute(f"COPY ({rows}) TO '{given['out']}' (FORMAT parquet)")


if __name__ == "__main__":
    main()
