"""Planning over a topic of 10,000 ledgers: admin answers that are simulated, a warm session."""

from __future__ import annotations

from typing import Any

from benchmarks.case import Bench, Case
from benchmarks.data.events import EVENT
from benchmarks.data.simulated import SimulatedAdmin, Wide, fill_table
from benchmarks.measure import BrokenCaseError, Contender, Result, at_most, take_turns
from offloader.config import Config, load_config
from reader.model import Topic
from reader.storage import open_storage

__all__ = ["CASES"]

_NAMESPACE = "public/default"
_PARTITIONS = 4


def _run(bench: Bench) -> list[Result]:
    ledgers = 400 if bench.quick else 10_000
    topic = Topic.parse(f"{_NAMESPACE}/wide")
    wide = Wide(topic, _PARTITIONS, ledgers, EVENT.schema)
    with SimulatedAdmin(wide) as admin:
        hot = bench.world.lake(_config(bench, admin.url, "wide-hot")).spark
        filled = _config(bench, admin.url, "wide-cold")
        table = fill_table(open_storage(filled.storage), wide, commits=5 if bench.quick else 100)
        cold = bench.world.lake(filled).spark
        text = f"SELECT id, cents FROM pulsar.`{_NAMESPACE}`.wide"
        middle = ledgers // 2
        # Well inside: maxima may be a millisecond late.
        low = wide.span(middle)[0] + 1_000
        high = wide.span(middle + ledgers // 100)[0] - 1_000
        part = (
            f"{text} WHERE __publishTime >= timestamp_millis({low}) "
            f"AND __publishTime < timestamp_millis({high})"
        )
        files = len(cold.sql(text).inputFiles())
        some = len(cold.sql(part).inputFiles())
        if (files, some) != (ledgers, ledgers // 100):
            raise BrokenCaseError(f"planned are {files} and {some} files of {ledgers} ledgers")
        delta = f"SELECT id, cents FROM delta.`{table.uri}`"
        contenders = {
            "all hot": _planned(hot, text),
            "all cold": _planned(cold, text),
            "all cold, 1 % of the time": _planned(cold, part),
            "Spark's own Delta scan": _planned(cold, delta),
        }
        seconds = take_turns(contenders, bench.repeats)
    targets = {"all hot": at_most(2), "all cold": at_most(1)}
    bench.say(f"{ledgers:,} ledgers of {_PARTITIONS} partitions; from the text to Spark's tasks")
    return [bench.result(name, "s", taken, targets.get(name)) for name, taken in seconds.items()]


def _planned(spark: Any, text: str) -> Contender:
    """From the query's text to the list of Spark's tasks, which has to be the same each time."""

    def tasks() -> int:
        return int(spark.sql(text)._jdf.queryExecution().toRdd().getNumPartitions())

    expected = tasks()
    if not expected:
        raise BrokenCaseError(f"no task for {text}")
    return Contender(tasks, expected)


def _config(bench: Bench, admin_url: str, store: str) -> Config:
    folder = bench.world.directory
    return load_config(
        {
            "pulsar": {"admin_url": admin_url},
            "storage": {"uri": str(folder / "tables" / store)},
            "query": {"cache_dir": str(folder / "publish-times" / store)},
            "spark": {"delta": True},  # a peer
        }
    )


CASES = (Case("planning", "a topic of 10,000 ledgers, all hot and all cold", _run),)
