"""What steps do to a compacted view, and to a Pulsar that compacts; drawn in ``view_histories``.

No message is lost here: Pulsar deletes only what it has compacted, or what is in the table. So a
view has the latest message of each key, or is an error because rows have expired.
"""

from dataclasses import dataclass

from reader.errors import PulsarLakeError
from testbed.simulation import ManagedLedger
from tests.simulation.compacted.compaction import compact, latest
from tests.simulation.compacted.view import CompactedView, View
from tests.simulation.kinds import Do, with_part
from tests.simulation.world import TOPIC, World, tries

_KEYS = 5
_MOST_VIEWS = 3


@dataclass(frozen=True, slots=True)
class _PinnedView:
    """A view that is read later. ``state``: of Pulsar and table when it was planned."""

    view: CompactedView
    expected: View
    state: tuple[object, ...]


def _publish_keyed(world: World, ml: ManagedLedger, b: int) -> None:
    for number in range(b % 4 + 1):
        key = b"k%d" % ((b // 4 + number * 3) % _KEYS)
        value = None if (b + number) % 7 == 0 else world.value(None)
        world.state.publish(ml, [value], partition_key=key)


def _trim_needed(world: World, a: int, b: int) -> None:
    """Pulsar deletes what all cursors have passed, of partitions that have one."""
    for ml in world.parts:
        if ml.cursors:
            world.state.trim(ml)


def _view(world: World, a: int, b: int) -> None:
    """Ask for the view now, or plan it and read it later."""
    world.effects.reset()
    found: list[tuple[CompactedView, View]] = []

    def run() -> None:
        view = CompactedView.of(world.new_clients(), TOPIC)
        found.append((view, {} if b % 3 == 0 else view.read(world.new_clients())))

    expected, error = _expected(world), tries(run)
    if error is not None:
        world.require(
            world.expired_before is not None, f"a compacted view fails without a reason: {error}"
        )
        return
    view, rows = found[0]
    if b % 3:
        _require_same(world, rows, expected)
    elif len(world.views) < _MOST_VIEWS:
        world.views.append(_PinnedView(view, expected, _state(world)))


def _read_view(world: World, a: int, b: int) -> None:
    """Read a view that was planned before."""
    world.effects.reset()
    if not world.views:
        return
    pinned = world.views[a % len(world.views)]
    assert isinstance(pinned, _PinnedView)
    try:
        rows = pinned.view.read(world.new_clients())
    except PulsarLakeError as error:
        same = pinned.state == _state(world)
        world.require(not same, f"a planned compacted view fails without a reason: {error}")
    else:
        _require_same(world, rows, pinned.expected)


def _expected(world: World) -> View:
    return {(ml.index, key): value for ml in world.parts for key, value in latest(ml).items()}


def _require_same(world: World, rows: View, expected: View) -> None:
    world.require(rows == expected, f"a compacted view has {rows}, not {expected}")


def _state(world: World) -> tuple[object, ...]:
    compacted = [ml.compacted.id if ml.compacted else None for ml in world.parts]
    there = [[one.id for one in ml.listing] for ml in world.parts]
    return compacted, there, world.expired_before


VIEW_KINDS: dict[str, Do] = {
    "publish_keyed": with_part(_publish_keyed),
    "compact": with_part(lambda world, ml, b: compact(world.state, ml)),
    "trim_needed": _trim_needed,
    "view": _view,
    "read_view": _read_view,
}
