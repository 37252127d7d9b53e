"""What steps do to a stream, and to a Pulsar without a hold; drawn in ``stream_histories``."""

from testbed.simulation import CrashError, ManagedLedger, Trouble
from tests.simulation.checks import work
from tests.simulation.kinds import Do, with_part
from tests.simulation.streams import stream_checks
from tests.simulation.world import TOPIC, World


def _stream(world: World, a: int, b: int) -> None:
    """Begin a stream, or read on: a micro-batch, or all; sometimes by a driver that starts."""
    if world.stream is None:
        stream_checks.begin_stream(world, a, b)
        return
    if b % 5 == 0:
        stream_checks.restart_stream(world)
    stream_checks.read_stream(world, drain=b % 2 == 0)


def _replay(world: World, a: int, b: int) -> None:
    if b % 3 == 0:
        stream_checks.restart_stream(world)
    stream_checks.replay_batch(world, a)


def _troubled(trouble: Trouble) -> Do:
    """A micro-batch in which the driver dies, an effect fails, or ledgers move: new, or again."""

    def step(world: World, a: int, b: int) -> None:
        if world.stream is None:
            stream_checks.begin_stream(world, a, b)
            return

        def begin() -> None:
            world.effects.plan(trouble, a % 40 + 1, lambda: _move(world, b))

        try:
            if b % 4 == 0:
                stream_checks.replay_batch(world, a, begin)
            else:
                stream_checks.read_stream(world, drain=b % 2 == 0, trouble=begin)
        except CrashError:
            stream_checks.restart_stream(world)
        world.effects.reset()

    return step


def _move(world: World, b: int) -> None:
    """An offloader commits, or maintains the table; Pulsar deletes what its hold lets go."""
    if b % 5 == 0:
        for ml in world.parts:
            world.state.unload(ml)
    # Not where rows would expire: before they were read that is a loss.
    work(world, b % 2, b % 3 == 0 and not world.settings.retention_hours)
    for ml in world.parts:
        if ml.held:
            world.state.trim(ml, "trimmed")


def _idle(world: World, a: int, b: int) -> None:
    """Brokers delete a partition that has no subscription, and nobody uses."""
    ml = world.part(a)
    if ml is not None and ml.index > 0:
        world.state.delete_inactive(ml)


def _revive(world: World, a: int, b: int) -> None:
    """A producer comes to a partition that was deleted."""
    name = f"{TOPIC.full_name}-partition-{a % max(1, world.topic.count)}"
    if world.topic.count and a % world.topic.count not in world.topic.parts:
        ml = world.state.partition(name)
        assert ml is not None
        version = world.version(0)
        world.state.publish(ml, [world.value(version)], schema=version)


def _burst(world: World, ml: ManagedLedger, b: int) -> None:
    """Many messages, sometimes behind one of a producer whose clock is a day ahead."""
    version = world.version(0)
    for number in range(30):
        ahead = 24 * 3_600_000 if number == 0 and b % 2 else 0
        world.state.publish(ml, [world.value(version)], schema=version, producer_ahead_ms=ahead)


STREAM_KINDS: dict[str, Do] = {
    "stream": _stream,
    "replay": _replay,
    "stream_crash": _troubled("crash"),
    "stream_fail": _troubled("fail"),
    "stream_meet": _troubled("meet"),
    "roll": with_part(lambda world, ml, b: world.state.roll(ml)),
    "burst": with_part(_burst),
    "idle": _idle,
    "revive": _revive,
}
