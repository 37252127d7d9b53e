"""`scan()` gives the rows of Spark's table: filters, times, and while segments move."""

import sys
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from offloader.config import Config
from reader import open_topic
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Topic
from reader.prefetch import THREAD_NAME
from reader.storage import open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.contract.against_java import offload_in_thread
from tests.contract.rows import key_of, keyed
from tests.support.running import run_program

# -- one topic on both sides -----------------------------------------------------------------------


FILTERS = {
    "id >= 150 AND id < 420": (pc.field("id") >= 150) & (pc.field("id") < 420),
    "name IS NULL": pc.field("name").is_null(),
    "NOT (name = 'n8')": ~(pc.field("name") == "n8"),
    "name IN ('n1', 'n350', 'n599')": pc.field("name").isin(["n1", "n350", "n599"]),
    "price > 100 OR price IS NULL": (pc.field("price") > 100) | pc.field("price").is_null(),
    "at.country = 'FR'": pc.field("at", "country") == "FR",
    "at.country IS NULL": pc.field("at", "country").is_null(),
    "__partition = 1": pc.field("__partition") == 1,
    "__key IS NULL AND id % 2 = 0": pc.field("__key").is_null()
    & (pc.bit_wise_and(pc.field("id"), 1) == 0),
    "id > 1000": pc.field("id") > 1000,
}


@pytest.mark.journey
@pytest.mark.parametrize("where", FILTERS)
def test_a_filter_gives_the_rows_of_sparks_where(
    where: str, orders: str, lake: PulsarLake, lake_config: Config
) -> None:
    frame = lake.table(orders).where(where)
    with open_topic(lake_config, orders) as topic:
        found = topic.scan(filter=FILTERS[where]).read_all()
        assert keyed(found.to_pylist()) == keyed(frame.toArrow().to_pylist())
        ids = topic.scan(["id"], filter=FILTERS[where]).read_all()
        assert ids.column_names == ["id"]
        assert sorted(ids["id"].to_pylist()) == sorted(found["id"].to_pylist())
        assert topic.scan([], filter=FILTERS[where]).read_all().num_rows == found.num_rows


@pytest.mark.journey
def test_columns_times_and_counts(orders: str, lake: PulsarLake, lake_config: Config) -> None:
    with open_topic(lake_config, orders) as topic:
        everything = topic.scan().read_all()
        assert everything.schema.names == lake.table(orders).columns
        assert topic.scan(["name", "id"]).schema.names == ["name", "id"]
        assert topic.scan([]).read_all().num_rows == 600
        times = sorted(everything["__publishTime"].to_pylist())
        start, end = times[150], times[450]
        inside = [one for one in times if start <= one <= end]
        for low, high in ((start, end), (start.isoformat(), end.replace(tzinfo=None).isoformat())):
            found = topic.scan(["__publishTime"], start=low, end=high).read_all()
            assert sorted(found["__publishTime"].to_pylist()) == inside
        frame = lake.table(orders).where(f"__publishTime >= '{start.isoformat()}'").select("id")
        found = topic.scan(["id"], start=start).read_all()
        assert sorted(found["id"].to_pylist()) == sorted(r.id for r in frame.collect())
        found = topic.scan(["id"], start=start, end=end, filter=pc.field("id") < 300).read_all()
        assert 0 < found.num_rows < len(inside)
        assert max(found["id"].to_pylist()) == 299


def test_wrong_use(orders: str, lake_config: Config) -> None:
    with open_topic(lake_config, orders) as topic:
        with pytest.raises(ConfigurationError, match="has no column ids"):
            topic.scan(["ids"])
        with pytest.raises(ConfigurationError, match="asked for twice"):
            topic.scan(["id", "id"])
        for where in (pc.field("ids") == 1, pc.field("id"), pc.field("id") == "x"):
            with pytest.raises(ConfigurationError, match="the filter cannot be applied"):
                topic.scan(filter=where)
        with pytest.raises(ConfigurationError, match="names a column by its number"):
            topic.scan(filter=pc.field(0) == 1)
        assert topic.scan([], filter=pc.scalar(False)).read_all().num_rows == 0
        with pytest.raises(ConfigurationError, match="'noon' is not a time"):
            topic.scan(start="noon")
    with open_topic(lake_config, orders + "-of-nobody") as topic, pytest.raises(NotFoundError):
        topic.scan()


def test_only_what_may_match_is_read(orders: str, lake_config: Config) -> None:
    """Files that cannot match are not even opened: they may be missing."""
    storage = open_storage(lake_config.storage)
    table = TopicTable.open(storage, Topic.parse(orders))
    assert table is not None
    filesystem, directory = storage.directory(Topic.parse(orders))
    kept: dict[str, bytes] = {}
    with open_topic(lake_config, orders) as topic:
        above = topic.scan(["__ledgerId"], filter=pc.field("id") >= 200).read_all()
    assert above.num_rows == 400
    hot = min(above["__ledgerId"].to_pylist())
    files = table.files().to_pylist()
    assert {one["min.__partition"] for one in files} == {0, 1}
    first = [one for one in files if one["min.__partition"] == 0]
    for one in first:
        path = f"{directory}/{one['path']}"
        with filesystem.open_input_file(path) as source:
            kept[path] = source.readall()
        filesystem.delete_file(path)
    try:
        with open_topic(lake_config, orders) as topic:
            found = topic.scan(["__partition"], filter=pc.field("__partition") == 1).read_all()
            assert set(found["__partition"].to_pylist()) == {1}
            assert topic.scan([], filter=pc.field("__ledgerId") >= hot).read_all().num_rows == 400
            with pytest.raises(NotFoundError, match="is gone"):
                topic.scan(["id"]).read_all()
    finally:
        for path, content in kept.items():
            with filesystem.open_output_stream(path) as sink:
                sink.write(content)


# -- ends ------------------------------------------------------------------------------------------


def _threads() -> int:
    return sum(one.name == THREAD_NAME for one in threading.enumerate())


def test_what_is_open_is_closed(
    orders: str, lake_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    before = _threads()
    with open_topic(lake_config, orders) as topic:
        topic.scan(tiers="bookkeeper").read_all()
        assert _threads() == before
        abandoned = topic.scan(tiers="bookkeeper")
        abandoned.read_next_batch()
        del abandoned
        assert _threads() == before
        started.clear()
        reader = topic.scan(tiers="bookkeeper")
        reader.read_next_batch()
        assert THREAD_NAME in started  # with so few rows it may have ended by itself
    assert _threads() == before
    with pytest.raises(ConfigurationError, match="closed before all rows were read"):
        reader.read_all()


_ABANDONED = """
from reader import open_topic
reader = open_topic(None, {topic!r}).scan(tiers={tiers!r})
assert reader.read_next_batch().num_rows
"""


@pytest.mark.parametrize("tiers", [None, "bookkeeper", "broker"])
def test_an_abandoned_reader_holds_up_no_process(
    orders: str, environment: dict[str, str], tiers: str | None
) -> None:
    program = _ABANDONED.format(topic=orders, tiers=tiers)
    done = run_program([sys.executable, "-c", program], env=environment, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.journey
def test_a_snapshot_outlives_its_ledgers(
    cluster: Cluster, admin: Admin, namespace: str, lake_config: Config
) -> None:
    """Offloaded and deleted from BookKeeper after `scan()`, before it is read."""
    topic = admin.create_topic(f"{namespace}/moving")
    admin.set_retention(namespace, 0, 0)
    admin.create_subscription(topic, "pulsar-lake")  # as the offloader does first
    publish(cluster.service_url, topic, [b"%03d" % n for n in range(500)], batch=10)
    admin.seal(topic)
    publish(cluster.service_url, topic, [b"%03d" % n for n in range(500, 700)], batch=10)
    with open_topic(lake_config, topic) as opened:
        where = pc.field("value") >= pa.scalar(b"250")
        before, filtered = opened.scan(["value"]), opened.scan(filter=where)
        publish(cluster.service_url, topic, [b"%03d" % n for n in range(700, 800)])
        admin.seal(topic)
        old = admin.ledgers(topic)
        offload_in_thread(lake_config, topic)
        admin.trim(topic)
        wait_until("the ledgers to be gone", lambda: not set(old[:2]) & set(admin.ledgers(topic)))
        values = [b"%03d" % n for n in range(800)]
        assert sorted(before.read_all()["value"].to_pylist()) == values[:700]
        rows = filtered.read_all()
        assert sorted(rows["value"].to_pylist()) == values[250:700]
        assert len({key_of(row) for row in rows.to_pylist()}) == 450
        assert sorted(opened.scan().read_all()["value"].to_pylist()) == values
