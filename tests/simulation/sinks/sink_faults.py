"""What steps do to brokers and storage under writes; drawn in ``sink_histories``."""

import shutil

from offloader.maintenance.staged import StagingCleaner
from reader.sink import STAGING
from testbed.simulation import Incident, IncidentKind, ManagedLedger
from tests.simulation.kinds import MINUTE, Do, with_part
from tests.simulation.sinks.sink_world import sinks_of
from tests.simulation.world import TOPIC, World, tries

_INCIDENTS: tuple[IncidentKind, ...] = (
    "hang up",
    "hang up behind",
    "unload",
    "broker crash",
    "write fails",
    "slow",
    "refuse",
)


def _sink_incident(world: World, a: int, b: int) -> None:
    """Something happens at one of the next entries."""
    kind = _INCIDENTS[a % 50 % len(_INCIDENTS)] if a % 50 < 48 else "refuse"
    if kind == "refuse" and b % 3:
        kind = "hang up behind"
    sinks_of(world).producers.incidents.append(Incident(kind, b % 4, b // 4 % 4))


def trim(world: World, ml: ManagedLedger) -> None:
    """Delete what nobody needs; the broker's snapshot of producers does not need it by then."""
    sinks_of(world).producers.snapshot(ml)
    world.state.trim(ml, "consumed")


def clean_up(world: World) -> None:
    """Maintenance deletes what writes have left."""
    error = tries(lambda: StagingCleaner(world.new_clients().storage).clean())
    if error is not None:
        world.require(bool(world.outages.met), f"clean-up fails without a reason: {error}")


def _sink_policy(world: World, a: int, b: int) -> None:
    """Somebody turns deduplication off."""
    sinks = sinks_of(world)
    if b % 3 == 0:
        sinks.producers.may_enable = a % 2 == 0
    else:
        sinks.producers.disable(TOPIC.full_name)


def _sink_exclusive(world: World, ml: ManagedLedger, b: int) -> None:
    sinks = sinks_of(world).producers
    sinks.reserve(ml, exclusive=not sinks.is_exclusive(ml))


def _sink_puts(world: World, a: int, b: int) -> None:
    """The client of the store has to ask twice from now on, or not any more."""
    world.times.repeats_puts = not world.times.repeats_puts


def _sink_broker(world: World, a: int, b: int) -> None:
    """The broker dies, with all or some of what it has not stored yet."""
    sinks_of(world).producers.crash(b % 4)


def _sink_restore(world: World, a: int, b: int) -> None:
    """The storage is copied; or it is what it was then, without what was decided since."""
    sinks = sinks_of(world)
    place, copy = world.root / "tables" / STAGING, world.root / "copied-writes"
    if b % 2 == 0 or not copy.exists():
        shutil.rmtree(copy, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        shutil.copytree(place, copy)
    else:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(copy, place)
        sinks.restored += 1
        names = {app for app, _ in sinks.versions}
        sinks.unknown |= {app for app in names if not any((copy / app).rglob("*.manifest"))}
        for number in range(2):
            sinks.restart(number)


def _sink_skew(world: World, a: int, b: int) -> None:
    """Somebody sets the clock of a host."""
    sinks = sinks_of(world)
    minutes = (0, 4, -4, 30, -30, 3 * 60, -3 * 60, 24 * 60, -24 * 60)[b % 9]
    clock = world.clocks[a % len(world.clocks)]
    sinks.skewed += 1
    if clock is world.storages_clock and minutes * MINUTE < clock.ahead_ms:
        sinks.set_back += 1
    clock.set_ahead(minutes * MINUTE)


FAULT_KINDS: dict[str, Do] = {
    "sink_incident": _sink_incident,
    "sink_trim": with_part(lambda world, ml, b: trim(world, ml)),
    "sink_clean": lambda world, a, b: clean_up(world),
    "sink_policy": _sink_policy,
    "sink_exclusive": with_part(_sink_exclusive),
    "sink_puts": _sink_puts,
    "sink_broker": _sink_broker,
    "sink_restore": _sink_restore,
    "sink_skew": _sink_skew,
}
