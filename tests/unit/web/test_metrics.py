"""Metrics: each is written down, the dashboard asks for none that is not there."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from offloader.model.turn import PHASES
from offloader.service.metrics import Metrics, error_kind
from offloader.web.gauges import STATES
from reader.errors import CorruptError
from tests.unit.web.world import DONE, World

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "deploy" / "grafana" / "pulsar-lake.json"
PAGE = ROOT / "docs" / "monitoring.md"


def exported() -> dict[str, tuple[str, ...]]:
    """Metric → its labels, of a world where everything has happened once."""
    world = World()
    with world.running():
        assert "shop/live/orders" in world.get("/metrics").text
        found: dict[str, set[str]] = {}
        world.monitor.metrics.failed(CorruptError("x"))
        for family in text_string_to_metric_families(world.get("/metrics").text):
            assert family.documentation
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = found.setdefault(name, set())
            for sample in family.samples:
                labels |= sample.labels.keys() - {"le"}
    return {name: tuple(sorted(labels)) for name, labels in found.items()}


def documented() -> dict[str, tuple[str, ...]]:
    rows = re.findall(r"^\| `(pulsar_lake_\w+)`([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    return {name: tuple(sorted(re.findall(r"`(\w+)`", labels))) for name, labels in rows}


def test_every_metric_is_written_down_with_its_labels() -> None:
    found, written = exported(), documented()
    written_labels = dict(written)
    # Its series come with failures.
    found["pulsar_lake_topic_failures"] = written_labels["pulsar_lake_topic_failures"]
    assert found == written
    assert len(found) > 15


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/plain; version=0.0.4"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1"),
        ("application/openmetrics-text; version=abc", "text/plain; version=0.0.4"),
        ("application/openmetrics-text; version=1.x.0", "text/plain; version=0.0.4"),
        ("text/plain;version==;", "text/plain; version=0.0.4"),
        ("text/plain;version=1.0.0,text/plain;version=x", "text/plain; version=1.0.0"),
    ],
)
def test_a_version_that_is_none_gets_plain_text(accept: str, kind: str) -> None:
    world = World()
    with world.running():
        answer = world.get("/metrics", accept=accept)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert "pulsar_lake_info" in answer.text


def test_the_dashboard_asks_for_what_there_is() -> None:
    dashboard: Any = json.loads(DASHBOARD.read_text())
    queries = [one["expr"] for panel in dashboard["panels"] for one in panel["targets"]]
    assert len(queries) > 15
    names = {name for query in queries for name in re.findall(r"pulsar_lake_\w+", query)}
    known = set(exported())
    known |= {f"{name}{end}" for name in known for end in ("_bucket", "_sum", "_count")}
    known.add("pulsar_lake_topic_failures")
    assert names <= known
    asked = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    assert {name for name in exported() if name not in asked} == set(), "a panel for each"
    for query in queries:
        labels = set(re.findall(r"by \(([^)]*)\)", query))
        used = {one.strip() for some in labels for one in some.split(",")}
        assert used <= {"instance", "topic", "le", "stage", "kind", "state", "outcome", "version"}


def test_panels_do_not_overlap() -> None:
    dashboard: Any = json.loads(DASHBOARD.read_text())
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"pulsar_lake_{name}", labels)


def test_what_a_commit_counts() -> None:
    metrics = Metrics()
    metrics.committed(DONE)
    metrics.committed(DONE)
    metrics.released(3)
    names = ("commits", "ledgers", "files", "rows", "rescued_rows", "read_bytes", "written_bytes")
    assert [value(metrics, f"{name}_total") for name in names] == [2, 4, 2, 100, 8, 1800, 1400]
    assert value(metrics, "releases_total") == 3


def test_labels_are_bounded() -> None:
    assert error_kind(CorruptError("x")) == "CorruptError"
    assert error_kind(RuntimeError("java.lang.OutOfMemoryError: 17 of topic x")) == "other"
    metrics = Metrics()
    for phase in PHASES:
        assert value(metrics, "stage_seconds_count", stage=phase) == 0, "there from the start"
        metrics.took(phase, 0.05)
        assert value(metrics, "stage_seconds_bucket", stage=phase, le="0.1") == 1
    assert len(STATES) == len(set(STATES)) == 5
