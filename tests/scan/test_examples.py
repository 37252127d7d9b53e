"""What a scan gives to DuckDB, Polars and pandas, and the programs in `examples/`."""

import re
import sys
from pathlib import Path

import pytest

from offloader.config import Config
from reader import open_topic
from tests.support.running import run_program

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.journey
def test_duckdb_polars_and_pandas_take_the_rows(orders: str, lake_config: Config) -> None:
    import duckdb
    import polars

    with open_topic(lake_config, orders) as topic:
        columns = ["id", "name", "price", "at"]
        query = 'SELECT count(*), sum(id), count(name), count("at".country) FROM rows'
        everything = topic.scan(columns).read_all().to_pylist()
        countries = sum(bool(one["at"] and one["at"]["country"]) for one in everything)
        names = sum(one["name"] is not None for one in everything)
        with duckdb.connect() as connection:
            connection.register("rows", topic.scan(columns))
            answer = connection.execute(query).fetchall()
        assert answer == [(600, 600 * 599 // 2, names, countries)]
        frame = polars.DataFrame(topic.scan(columns)).sort("id")
        assert frame.to_dicts() == sorted(everything, key=lambda row: int(row["id"]))
        pandas = topic.scan(columns).read_pandas()
        assert pandas["id"].sum() == 600 * 599 // 2
        assert pandas["price"].isna().sum() == 600 // 5


COUNTS = {
    "query_duckdb": r"│\s+(\d+) │\s+0 │",
    "query_pandas": r"^\S+ +(\d+) 20",
    "query_polars": r"┆ (\d+) +│$",
}
"""Where an example prints numbers of messages, which are all that there are."""


ELSEWHERE = {"continuous_view"}
"""``test_continuous_view.py`` has it."""


def test_every_example_is_tested() -> None:
    assert {one.stem for one in EXAMPLES.glob("*.py")} == {*COUNTS, *ELSEWHERE}


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_an_example(
    name: str, orders: str, settings_path: Path, environment: dict[str, str]
) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), str(settings_path), orders]
    done = run_program(command, env=environment, timeout=280)
    assert (done.returncode, done.stderr) == (0, "")
    counts = re.findall(COUNTS[name], done.stdout, re.MULTILINE)
    assert sum(map(int, counts)) == 600, done.stdout
