"""PulsarLake: forced tiers, segments, explain, sessions of others."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from reader.errors import ConfigurationError
from reader.model.reasons import Reason
from spark_ext import PulsarLake, build_session
from spark_ext.session.builder import require_catalog
from tests.spark.conftest import COLD, SEALED, TOTAL, Orders

TOMORROW = datetime.now(UTC) + timedelta(days=1)


@pytest.mark.journey
def test_a_time_filter_reads_what_it_needs(orders: Orders, lake: PulsarLake) -> None:
    """Rows of one phase were all sent before those of the next one."""
    upto = "max(__publishTime) FILTER (WHERE id < {}) AS "
    aggregates = (upto.format(COLD) + "cold", upto.format(COLD + SEALED) + "sealed")
    [last] = lake.table(orders.topic).selectExpr(*aggregates).collect()
    for condition, ids in (
        (f"__publishTime > '{last.sealed}'", range(COLD + SEALED, TOTAL)),
        (f"__publishTime > '{last.cold}'", range(COLD, TOTAL)),
        (f"__publishTime BETWEEN '1970-01-01' AND '{last.cold}'", range(COLD)),
    ):
        text = f"SELECT id FROM {orders.table} WHERE {condition}"
        assert sorted(row.id for row in lake.spark.sql(text).collect()) == list(ids)
        [plan], by_spark = lake.explain_query(text)
        read = {one.segment.state for one in plan.segments if one.read}
        assert ("offloaded" in read) == (0 in ids)
        assert "open" in read, "when its last rows were sent, only its entries tell"
        [explained] = lake.spark.sql(f"EXPLAIN {text}").collect()
        assert "Physical Plan" in explained[0]
        assert "Physical Plan" in by_spark


@pytest.mark.journey
@pytest.mark.parametrize(
    ("tiers", "ids"),
    [
        (None, range(TOTAL)),
        ("parquet", range(COLD)),
        ("bookkeeper", range(TOTAL)),
        ("broker", range(TOTAL)),
    ],
)
def test_forced_tiers(tiers: str | None, ids: range, orders: Orders, lake: PulsarLake) -> None:
    rows = lake.table(orders.topic, tiers=tiers).select("id").collect()
    assert sorted(row.id for row in rows) == list(ids)


def test_topics_may_be_named_as_people_do(orders: Orders, lake: PulsarLake) -> None:
    short = orders.topic.removeprefix("persistent://")
    assert lake.table(short).count() == TOTAL


def test_an_unknown_view(orders: Orders, lake: PulsarLake) -> None:
    with pytest.raises(ConfigurationError, match="unknown view 'latest'"):
        lake.table(orders.topic, view="latest")


def test_segments(orders: Orders, lake: PulsarLake) -> None:
    found = lake.segments(orders.topic)
    states = {state: [s for s in found if s.state == state] for state in ("offloaded", "sealed")}
    assert sum(s.rows or 0 for s in states["offloaded"]) == COLD
    assert {s.tier for s in states["offloaded"]} == {"parquet"}
    assert states["sealed"]
    assert {s.reason.kind for s in states["offloaded"] if s.rows} == {Reason.IN_TABLE}
    assert {s.reason.kind for s in states["sealed"]} == {Reason.SEALED}


def test_explain(orders: Orders, lake: PulsarLake) -> None:
    everything = lake.explain(orders.topic)
    assert all(one.pruned is None for one in everything.segments)
    later = lake.explain(orders.topic, start=TOMORROW)
    cold = [one for one in later.segments if one.segment.state == "offloaded"]
    assert cold
    assert all(one.pruned for one in cold)
    assert later.files_read == 0 < later.files
    assert "pruned" in str(later)
    naive = lake.explain(orders.topic, end=TOMORROW.replace(tzinfo=None))
    assert naive.files_read == naive.files


def test_a_session_of_ones_own(orders: Orders, lake: PulsarLake) -> None:
    with PulsarLake(lake.config, spark=lake.spark) as joined:
        assert joined.table(orders.topic).count() == TOTAL
    # It was not ours to stop.
    assert lake.spark.sql("SELECT 1").collect()[0][0] == 1


def test_the_running_session_is_taken(lake: PulsarLake) -> None:
    assert build_session(lake.config).sparkContext is lake.spark.sparkContext


def test_other_settings_give_another_session(
    orders: Orders, lake: PulsarLake, tmp_path: Path
) -> None:
    elsewhere = lake.config.storage.model_copy(update={"uri": str(tmp_path)})
    settings = lake.config.model_copy(update={"storage": elsewhere})
    with (
        PulsarLake(settings) as without,
        pytest.raises(AnalysisException, match=r"was moved for the table at .* but there is none"),
    ):
        without.table(orders.topic)
    query = lake.config.query.model_copy(update={"allow_data_loss": True})
    with PulsarLake(settings.model_copy(update={"query": query})) as other:
        # Nothing is offloaded there, and nothing is trimmed: all rows are hot.
        assert other.table(orders.topic).count() == TOTAL
        with pytest.raises(AnalysisException, match="has no table yet"):
            other.table(orders.topic, tiers="parquet")
    assert lake.table(orders.topic, tiers="parquet").count() == COLD


def test_a_session_without_the_catalog_is_refused(lake: PulsarLake) -> None:
    bare = lake.spark.newSession()
    bare.conf.set("spark.sql.catalog.pulsar", "other.Catalog")
    with pytest.raises(ConfigurationError, match="does not have the catalog"):
        require_catalog(bare)
