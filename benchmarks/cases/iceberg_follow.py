"""An Iceberg table that follows commits of 10 files, against these commits to Delta."""

from typing import Any

from benchmarks.case import Bench, Case
from benchmarks.data.events import EVENT
from benchmarks.data.wide_table import Wide, additions_of
from benchmarks.measure import BrokenCaseError, Contender, Result, at_most, paired, take_turns
from offloader.commit.delta_committer import DeltaCommitter
from offloader.config import Config, load_config
from offloader.iceberg import open_follower
from offloader.iceberg.catalogs import identifier_of, open_catalog
from offloader.iceberg.snapshots import MOST_SNAPSHOTS
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.storages.kinds import StorageServer, storage_server

_FILES = 10
_MOST = 10.0


def _run(bench: Bench) -> list[Result]:
    directory = {"uri": str(bench.world.directory / "tables")}
    results = _followed(bench, "in a directory", directory)
    results += _followed(bench, "with many snapshots", directory, one_by_one=True)
    with storage_server("versity") as s3:
        assert isinstance(s3, StorageServer)
        bucket = {"uri": s3.uri, "options": s3.storage_options}
        results += _followed(bench, "on S3", bucket)
    return results


def _followed(
    bench: Bench, where: str, storage_settings: dict[str, Any], *, one_by_one: bool = False
) -> list[Result]:
    before = 5 if bench.quick else MOST_SNAPSHOTS if one_by_one else 100
    topic = Topic.parse("public/default/followed")
    wide = Wide(topic, _FILES, _FILES * (before + bench.repeats + 1), EVENT.schema)
    additions = additions_of(wide, before + bench.repeats + 1)
    config = _config(bench, where, storage_settings)
    storage = open_storage(config.storage)
    follower = open_follower(storage, config)
    assert follower is not None
    table: TopicTable | None = None
    for _ in range(before):
        table = DeltaCommitter(storage).commit(table, next(additions))
        if one_by_one:
            follower.follow(topic)
    follower.follow(topic)

    def commit() -> int:
        nonlocal table
        addition = next(additions)
        table = DeltaCommitter(storage).commit(table, addition)
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
    bench.say(f"{where}: of a table of {before * _FILES:,} files")
    ratio = paired(seconds["Iceberg follows"], seconds["Delta commit"], lambda one, two: one / two)
    return [
        *(bench.result(f"{name}, {where}", "s", taken) for name, taken in seconds.items()),
        bench.result(f"of the Delta commit's time, {where}", "x", ratio, at_most(_MOST)),
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


def _config(bench: Bench, where: str, storage: dict[str, Any]) -> Config:
    own = where.replace(" ", "-")
    database = bench.world.directory / f"{own}.db"
    options = {"uri": f"sqlite:///{database}"}
    uri = f"{storage['uri']}/{own}"
    return load_config(
        {"storage": {**storage, "uri": uri}, "iceberg": {"catalog": "sql", "options": options}}
    )


CASES = (Case("iceberg_follow", "an Iceberg table follows commits of 10 files", _run),)
