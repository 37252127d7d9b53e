"""An Iceberg table that follows commits of 10 files, against these commits to Delta."""

from __future__ import annotations

from benchmarks.case import Bench, Case
from benchmarks.data.events import EVENT
from benchmarks.data.simulated import Wide, additions_of
from benchmarks.measure import BrokenCaseError, Contender, Result, at_most, paired, take_turns
from offloader.commit.append import append
from offloader.config import Config, load_config
from offloader.iceberg import open_follower
from offloader.iceberg.catalogs import identifier_of, open_catalog
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable

__all__ = ["CASES"]

_FILES = 10
_MOST = 10.0


def _run(bench: Bench) -> list[Result]:
    results = []
    for kind in ("files", "sql"):
        results += _followed(bench, kind)
    return results


def _followed(bench: Bench, kind: str) -> list[Result]:
    before = 5 if bench.quick else 100
    topic = Topic.parse(f"public/default/followed-{kind}")
    wide = Wide(topic, _FILES, _FILES * (before + bench.repeats + 1), EVENT.schema)
    additions = additions_of(wide, before + bench.repeats + 1)
    config = _config(bench, kind)
    storage = open_storage(config.storage)
    follower = open_follower(storage, config)
    assert follower is not None
    table: TopicTable | None = None
    for _ in range(before):
        table = append(storage, table, next(additions))
    follower.follow(topic)

    def commit() -> int:
        nonlocal table
        addition = next(additions)
        table = append(storage, table, addition)
        return len(addition.files)

    seconds = take_turns(
        {
            "Delta commit": Contender(commit, _FILES),
            "Iceberg follows": Contender(lambda: follower.follow(topic).added, _FILES),
        },
        bench.repeats,
    )
    follower.close()
    _check(config, topic)
    bench.say(f"{kind}: of a table of {before * _FILES:,} files, in a local directory")
    ratio = paired(seconds["Iceberg follows"], seconds["Delta commit"], lambda one, two: one / two)
    return [
        *(bench.result(f"{name}, {kind}", "s", taken) for name, taken in seconds.items()),
        bench.result(f"of the Delta commit's time, {kind}", "x", ratio, at_most(_MOST)),
    ]


def _check(config: Config, topic: Topic) -> None:
    """Iceberg has the Delta table's files, each once."""
    storage = open_storage(config.storage)
    table = TopicTable.open(storage, topic)
    assert table is not None
    with open_catalog(storage, config.iceberg) as catalog:
        followed = catalog.load_table(identifier_of(config.iceberg, topic))
        names = [one.file.file_path.rpartition("/")[2] for one in followed.scan().plan_files()]
    if sorted(names) != sorted(table.paths()):
        raise BrokenCaseError(f"Iceberg has {len(names)} files, Delta {len(table.paths())}")


def _config(bench: Bench, kind: str) -> Config:
    folder = bench.world.directory
    options = {"uri": f"sqlite:///{folder}/iceberg.db"} if kind == "sql" else {}
    return load_config(
        {
            "storage": {"uri": str(folder / "tables" / f"iceberg-{kind}")},
            "iceberg": {"catalog": kind, "options": options},
        }
    )


CASES = (Case("iceberg_follow", "an Iceberg table follows commits of 10 files", _run),)
