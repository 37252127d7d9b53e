"""The answer of a streaming query kept in a topic: a view, for SQL and for any reader of Pulsar."""

import json
import tempfile
import time
from collections.abc import Iterable, Mapping
from typing import Any

from demo import queries
from demo.queries import Answer
from demo.stage import Stage
from demo.stream import few_states
from reader.closing import Closing
from testbed.screen import Screen

Changes = Mapping[tuple[str, int], list[tuple[int, float | None]]]
"""(carrier, month) → what each message with that key says: flights, mean delay."""

_NAME = "delays"
_KEY = "concat(carrier, ' ', month) AS __key,\n  "
_EVERY = "2 seconds"
_PATIENCE = 90.0
_SHOWN = 4


class DelaysView(Closing):
    """A stateful query that writes each changed row to a topic; runs until it is closed."""

    def __init__(self, spark: Any, stage: Stage) -> None:
        self._spark = spark
        self._stage = stage
        self._first = 0
        table = stage.table_of(_NAME)
        self._create = (
            f"CREATE TABLE {table}\n"
            "  (carrier STRING, month INT, flights BIGINT, delay DOUBLE)\n"
            "TBLPROPERTIES ('schemaType' = 'JSON')"
        )
        self._changes = queries.by_carrier_and_month(f"STREAM {stage.table}", _KEY)
        self._write = f'.writeStream.outputMode("update").toTable("{table}")'
        compacted = stage.table_of(f"`{_NAME}$compacted`")
        self._view = f"SELECT carrier, month, flights, delay FROM {compacted}"
        spark.sql(self._create)
        self._folder = tempfile.TemporaryDirectory(prefix="pulsar-lake-demo-view-")
        with few_states(spark):
            self._query = (
                spark.sql(self._changes)
                .writeStream.outputMode("update")
                .option("checkpointLocation", f"file://{self._folder.name}")
                .trigger(processingTime=_EVERY)
                .toTable(table)
            )

    def close(self) -> None:
        self._query.stop()
        self._folder.cleanup()

    def check_first(self, screen: Screen) -> None:
        """While December's flights come; January to November are there already."""
        for text in (self._create, self._changes, self._write, self._view):
            screen.quote(text)
        source = queries.until_november(self._source())
        self._wait(queries.total(source))
        answer = self._answer(self._view)
        self._first = queries.total(answer)
        screen.table(["key", "flights", "delay"], [_row(answer, key) for key in _some(answer)])
        wrong = queries.differences(queries.until_november(answer), source, "the source")
        screen.check("January to November agree with a query of the source", not wrong, wrong)

    def check_all(self, screen: Screen) -> None:
        """To be called once all is published."""
        source = self._source()
        self._wait(queries.total(source))
        answer = self._answer(self._view)
        changes = changes_by_key(self._stage.read(_NAME))
        rows = []
        for key in _some(answer):
            flights = [f"{count:,}" for count, _ in changes.get(key, [])]
            if len(flights) > _SHOWN:
                flights[_SHOWN - 1 : -1] = ["…"]
            rows.append([*_row(answer, key), " → ".join(flights)])
        screen.table(["key", "flights", "delay", "flights, message by message"], rows)
        batches = [one for one in self._query.recentProgress if one["numInputRows"]]
        updated = sum(one["stateOperators"][0]["numRowsUpdated"] for one in batches)
        screen.line(f"{len(answer)} keys, {updated} messages, in {len(batches)} micro-batches")
        more = queries.total(answer) - self._first
        screen.check("the view has followed the source", more > 0, f"{more} flights more")
        wrong = queries.differences(answer, source, "the source")
        screen.check("all months in the view agree with a query of the source", not wrong, wrong)
        wrong = wrong_changes(changes, answer, updated)
        screen.check("a reader of Pulsar gets each change once, in order", not wrong, wrong)

    def _source(self) -> Answer:
        return self._answer(queries.by_carrier_and_month(self._stage.table))

    def _answer(self, text: str) -> Answer:
        return queries.found(self._spark.sql(text).collect())

    def _wait(self, flights: int) -> None:
        """Until the micro-batches that are over have had so many, or a minute and a half."""
        deadline = time.monotonic() + _PATIENCE
        while sum(one["numInputRows"] for one in self._query.recentProgress) < flights:
            if (error := self._query.exception()) is not None:
                raise error
            if time.monotonic() > deadline:
                return
            time.sleep(0.2)


def _some(answer: Answer) -> list[tuple[str, int]]:
    """The busiest three of December, which change, and the busiest one of November."""
    keys = sorted(answer, key=lambda key: -answer[key][0])
    return [key for month, count in ((12, 3), (11, 1)) for key in _of(keys, month)[:count]]


def _of(keys: list[tuple[str, int]], month: int) -> list[tuple[str, int]]:
    return [key for key in keys if key[1] == month]


def _row(answer: Answer, key: tuple[str, int]) -> list[str]:
    flights, delay = answer[key]
    return [f"{key[0]} {key[1]}", f"{flights:,}", "-" if delay is None else f"{delay:.1f}"]


def changes_by_key(messages: Iterable[tuple[str, bytes]]) -> Changes:
    """messages: key and JSON of each, in order."""
    changes: dict[tuple[str, int], list[tuple[int, float | None]]] = {}
    for key, payload in messages:
        carrier, _, month = key.partition(" ")
        value = json.loads(payload)  # which has no member for NULL
        state = (value["flights"], value.get("delay"))
        changes.setdefault((carrier, int(month)), []).append(state)
    return changes


def wrong_changes(changes: Changes, view: Answer, updated: int) -> str:
    """What is wrong with a topic's messages, or "".

    updated: how often the query changed a key. Each time is one message; a key's flights grow
    from one to the next, and the last one is what the view has.
    """
    count = sum(map(len, changes.values()))
    if count != updated:
        return f"{count} messages, not {updated}"
    for key, states in changes.items():
        flights = [number for number, _ in states]
        if sorted(set(flights)) != flights:
            return f"{key}: {flights}"
    return queries.differences(
        {key: states[-1] for key, states in changes.items()}, view, "the view"
    )
