"""`INSERT INTO` a topic: rows of a query become its messages."""

from typing import Any

from demo.stage import Stage
from testbed.screen import Screen


def insert_cancelled(screen: Screen, spark: Any, stage: Stage, flights: Any) -> None:
    """The flights that never left, to a topic of their own; counted beside pandas.

    flights: all of them, as a pandas DataFrame.
    """
    table = stage.table_of("cancelled")
    create = f"CREATE TABLE {table} (carrier STRING, flight INT, distance INT)"
    insert = (
        f"INSERT INTO {table}\n"
        f"SELECT carrier, flight, distance FROM {stage.table} WHERE dep_time IS NULL"
    )
    for statement in (create, insert):
        screen.quote(statement)
        spark.sql(statement)
    rows = spark.sql(
        f"SELECT count(*) AS messages, count(DISTINCT carrier) AS carriers,\n"
        f"  sum(flight) AS numbers, sum(distance) AS miles FROM {table}"
    ).collect()
    cancelled = flights[flights["dep_time"].isna()]
    ours = tuple(rows[0])
    theirs = (
        len(cancelled),
        cancelled["carrier"].nunique(),
        int(cancelled["flight"].sum()),
        int(cancelled["distance"].sum()),
    )
    screen.line(f"{ours[0]:,} messages")
    screen.check("each cancelled flight is one message", ours == theirs, f"{ours}, not {theirs}")
