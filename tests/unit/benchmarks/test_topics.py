"""The benchmarks' topics and the clusters that they are on, without starting one."""

from __future__ import annotations

import pytest

from benchmarks.data.layouts import ROLLING, STRIPED, WHOLE
from benchmarks.data.topics import JSON, SHARED, STRIPED_JSON, TopicSpec
from benchmarks.world import World

SPECS = pytest.mark.parametrize("spec", SHARED.values(), ids=SHARED)


def test_each_shared_topic_has_a_name_of_its_own() -> None:
    assert all(name == spec.name for name, spec in SHARED.items())


@SPECS
def test_ledgers_that_the_broker_ends_are_full(spec: TopicSpec) -> None:
    entries = spec.layout.entries_per_ledger
    if entries is None:
        return
    per_ledger = entries * max(spec.batch, 1)
    assert spec.rows == spec.ledgers * per_ledger
    assert spec.quick_rows == spec.quick_ledgers * per_ledger


def test_only_clusters_that_are_not_needed_are_stopped() -> None:
    with World(quick=True) as world:
        first = {layout: world.servers(layout) for layout in (WHOLE, STRIPED, ROLLING)}
        world.stop_except({JSON.layout, STRIPED_JSON.layout})
        kept = {layout for layout, one in first.items() if world.servers(layout) is one}
    assert kept == {WHOLE, STRIPED}
