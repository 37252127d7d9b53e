"""A planner whose answers are written here, and a program that makes Spark ask it.

    python -m tests.spark.scripted_planner PYTHON CLASSES CHECKPOINTS

It prints a line for each query. PYTHON: a command that runs this module without arguments: as the
planner. CLASSES: a folder with compiled classes of Java. The topics: ``a/b/gone`` has lost its last
batch, ``a/b/many`` has 1,000 partitions, and of the table of ``a/b/cold`` the log knows a maximum
of 7.
"""

import os
import sys
from collections.abc import Callable
from functools import partial, reduce

from reader.errors import ConfigurationError
from reader.model import Position
from reader.plan import AnyOf, between
from spark_ext.planner import protocol as ask
from spark_ext.planner.predicates import expression_of
from spark_ext.planner.process import read_lines, serve

_COLUMNS = "id BIGINT, __topic STRING, __partition INT, __ledgerId BIGINT, __entryId BIGINT"
_START, _END = '{"at":0}', '{"at":1}'


# -- the planner -----------------------------------------------------------------------------------


def answer(_: str | None, question: ask.Question[object]) -> object:
    """Answer a question of the queries below."""
    match question:
        case ask.DescribeStream():
            return ask.StreamColumns(_COLUMNS)
        case ask.BoundStream():
            return ask.StreamBounds(_START, None)
        case ask.FindStreamEnd():
            return ask.StreamEnd(_END)
        case ask.FindNextBatch():
            plan = None if question.start == _END else _batch(question.stream)
            return ask.NextBatch(_END, _END, plan)
        case ask.MeasureStream():
            return ask.StreamMetrics({})
        case ask.LoadRelation():
            table = ask.SnapshotTable("cold$cold@1-x", "cold", True, _COLUMNS, 5, 100)
            text = "SELECT * FROM pulsar.`a/b`.`cold$cold@1-x`"
            return ask.Relation(ask.TopicView("a/b", text, _COLUMNS, {}, (table,)), None)
        case ask.PlanReads(cold=cold, hot=()):
            return ask.ReadPlans(
                tuple(ask.ColdPlan((7,) if one.aggregates else None, (), 0) for one in cold), ()
            )
        case ask.PlanBatch():
            raise ConfigurationError("ledger 7 has been deleted", hint="failOnDataLoss=false")
    raise ConfigurationError(f"no answer to {question}")


def _batch(stream: ask.Stream) -> ask.BatchPlan:
    batch = ask.MicroBatch(stream, _START, _END, "plan", "{}")
    if stream.options["topic"] == "a/b/gone":
        return ask.BatchPlan("gone", batch, (), (ask.BatchTier("bookkeeper", 1),))
    places = (between(one, Position(5, 0), Position(7, 9)) for one in range(1000))
    files = ask.BatchFiles("cut", 1, expression_of(AnyOf(tuple(places))))
    return ask.BatchPlan("many", batch, (files,), ())


# -- the queries -----------------------------------------------------------------------------------


def run(python: str, classes: str, checkpoints: str) -> None:
    """Run all queries, and print what became of each."""
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.classic.column import Column
    from pyspark.sql.functions import col

    from spark_ext.session.jars.shim import shim_jar

    conf: dict[str, bool | float | int | str | None] = {
        "spark.master": "local[1]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": f"{shim_jar()}:{classes}",
        "spark.log.level": "OFF",
        "spark.sql.catalog.pulsar": "io.pulsarlake.spark.catalog.PulsarCatalog",
        "spark.sql.catalog.pulsar.python": python,
        "spark.sql.extensions": "io.pulsarlake.spark.rules.PulsarLakeExtensions",
        "spark.ui.enabled": "false",
    }
    spark = SparkSession.builder.config(map=conf).getOrCreate()
    cold, jvm = spark.table("pulsar.`a/b`.cold"), spark._jvm
    assert jvm is not None

    def stream(topic: str) -> None:
        options = {"topic": f"a/b/{topic}", "endingPosition": None}
        reader = spark.readStream.format("pulsar")
        for name, value in options.items():
            reader = reader.option(name, value)
        writer = reader.load().writeStream.format("noop").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{checkpoints}/{topic}").start().awaitTermination()

    def aggregate(name: str) -> DataFrame:
        column = jvm.PythonUtils.toSeq([col("id")._jc])  # noqa: SLF001
        made = jvm.Max().apply(column) if name == "user's" else jvm.functions.max("id")
        return cold.agg(Column(made))

    queries: dict[str, Callable[[], object]] = {
        "gone": lambda: stream("gone"),
        "gone, again": lambda: stream("gone"),
        "many": lambda: stream("many"),
        "or": lambda: cold.where(
            reduce(lambda some, one: some | one, [col("id") == one for one in range(300)])
        ).count(),
        "max": lambda: aggregate("Spark's").first(),
        "Max": lambda: aggregate("user's").first(),
    }
    for name, query in queries.items():
        try:
            found = str(query())
        except Exception as error:  # noqa: BLE001 - it is what became of it
            found = str(error).partition("\n")[0].rpartition("with exception: ")[2]
        sys.stdout.write(f"{name}: {found}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:]:
        run(*sys.argv[1:])
    else:
        serve(lambda: read_lines(0, 60), partial(os.write, 1), answer)
