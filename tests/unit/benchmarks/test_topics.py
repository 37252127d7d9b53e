"""The benchmarks' topics and the clusters that they are on, without starting one."""

from benchmarks.data.layouts import STRIPED, TUNED, WHOLE
from benchmarks.data.topics import JSON, SHARED, STRIPED_JSON
from benchmarks.world import World


def test_each_shared_topic_has_a_name_of_its_own() -> None:
    assert all(name == spec.name for name, spec in SHARED.items())


def test_only_clusters_that_are_not_needed_are_stopped() -> None:
    with World(quick=True) as world:
        first = {layout: world.servers(layout) for layout in (WHOLE, STRIPED, TUNED)}
        world.stop_except({JSON.layout, STRIPED_JSON.layout})
        kept = {layout for layout, one in first.items() if world.servers(layout) is one}
    assert kept == {WHOLE, STRIPED}
