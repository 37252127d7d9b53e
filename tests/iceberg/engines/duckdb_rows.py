"""All rows of an Iceberg table by DuckDB: ``{"table": directory, "out": file}``.

With ``conditions`` and ``files``: instead, for each condition, which rows fulfil it, of the table
and of the Parquet files.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

NEVER = ("autoinstall_known_extensions", "autoload_known_extensions")


def extension(name: str) -> Path:
    """As it is in the package: nothing is fetched."""
    found = find_spec(f"duckdb_extension_{name}")
    assert found is not None
    assert found.origin is not None
    [file] = Path(found.origin).parent.rglob(f"{name}.duckdb_extension")
    return file


def answers(given: dict[str, Any]) -> str:
    sources = {
        "iceberg": f"iceberg_scan('{given['table']}')",
        "parquet": f"read_parquet({given['files']}, union_by_name = true)",
    }
    return " UNION ALL ".join(
        f"SELECT {number} AS condition, '{name}' AS source, "
        f"count(*) AS rows, coalesce(string_agg(__ledgerId || ':' || __entryId, ' ' "
        f"ORDER BY __ledgerId, __entryId), '') AS found FROM {source} "
        f"WHERE {condition.replace('{moment}', 'TIMESTAMPTZ')}"
        for number, condition in enumerate(given["conditions"])
        for name, source in sources.items()
    )


def main() -> None:
    given = json.loads(sys.argv[1])
    with duckdb.connect() as connection:
        for name in NEVER:
            connection.execute(f"SET {name} = false")
        for name in ("avro", "iceberg"):
            connection.execute(f"LOAD '{extension(name)}'")
        rows = f"SELECT * FROM iceberg_scan('{given['table']}')"
        if "conditions" in given:
            rows = answers(given)
        connection.execute(f"COPY ({rows}) TO '{given['out']}' (FORMAT parquet)")


if __name__ == "__main__":
    main()
