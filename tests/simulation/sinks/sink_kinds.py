"""What steps do to writes; drawn in ``sink_histories``."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from testbed.simulation import CrashError, Trouble
from tests.simulation.kinds import MINUTE, Do
from tests.simulation.product.drivers import Death, TaskRun, WriteAsked
from tests.simulation.sinks.sink_checks import check_rows, may_never_end, require_reason
from tests.simulation.sinks.sink_faults import FAULT_KINDS, clean_up, trim
from tests.simulation.sinks.sink_world import STREAM, SinkWorld, Version, sinks_of
from tests.simulation.world import TOPIC, World, tries

_NIGHTLY = "nightly"


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens in a write. ``opened`` is called when its tasks begin."""

    death: Death = field(default_factory=Death)
    opened: Callable[[], None] = lambda: None


_PLAIN = Plan()


# -- writes ------------------------------------------------------------------------------------


def _asked(
    sinks: SinkWorld, driver: int, b: int, query: str, epoch: int | None, **options: str
) -> WriteAsked:
    """A write whose tasks have rows that ``b`` says."""
    tasks = [partial(sinks.new_run, b // 3 + 5 * task) for task in range(b % 3 + 1)]
    given = {"topic": TOPIC.local_name, "batchingMaxMessages": str(b % 4 + 1)}
    given |= {"compression": "zlib" if b % 5 == 0 else "none"} | options
    return WriteAsked(
        given, query, epoch, tasks, lambda write, runs: sinks.commits(driver, write, runs, epoch)
    )


def _run(world: World, driver: int, asked: WriteAsked, plan: Plan = _PLAIN) -> bool:
    """Run a write to its end, with the trouble that is planned. Whether it was done."""
    sinks = sinks_of(world)
    one, happened = sinks.drivers[driver], sinks.producers.happened
    if asked.options.get("delivery"):
        asked = _direct(sinks, asked)
    try:
        error = tries(lambda: one.run(replace(asked, opened=plan.opened), plan.death))
    except CrashError:
        one.die()
        sinks.restart(driver)
        check_rows(world, sinks)
        return False
    app = one.write.app if one.write is not None else ""
    number = one.write.version if one.write is not None else -1
    number = number if asked.epoch is None else asked.epoch
    version = sinks.versions.get((app, number))
    met = world.effects.met or bool(world.outages.met) or sinks.producers.happened > happened
    if error is None:
        if version is not None:
            version.done = True
    else:
        require_reason(world, sinks, error, version, met or sinks.producers.is_troubled())
        if (
            asked.epoch is None
            and one.write is not None
            and not one.write.named
            and version is not None
        ):
            sinks.failed.append((app, number, world.clock.now_ms))
    check_rows(world, sinks)
    return error is None


def _direct(sinks: SinkWorld, asked: WriteAsked) -> WriteAsked:
    """The same, of which each execution of a task may be in the topic."""

    def noted(make: Callable[[], TaskRun]) -> TaskRun:
        made = make()
        sinks.direct.add(made.number)
        return made

    return replace(asked, tasks=[partial(noted, make) for make in asked.tasks])


def _micro_batch(world: World, driver: int, b: int, plan: Plan = _PLAIN, **options: str) -> bool:
    """The next one of the stream, by one of the drivers."""
    sinks = sinks_of(world)
    number = sinks.next[driver]
    asked = _asked(sinks, driver, b, STREAM, number, **options)
    if not _run(world, driver, asked, plan):
        return False
    sinks.committed = max(sinks.committed, number)
    sinks.next[driver] = number + 1
    return True


def _any_write(world: World, b: int, plan: Plan) -> None:
    """A micro-batch, or a batch with a name or without."""
    sinks = sinks_of(world)
    driver = int(b % 11 == 0)
    match b // 11 % 6:
        case 0:
            options = {"txnAppId": _NIGHTLY, "txnVersion": str(sinks.batch)}
            if _run(world, driver, _asked(sinks, driver, b, "q", None, **options), plan):
                sinks.batch += b % 4 > 0  # else it is run once more
        case 1:
            _run(world, driver, _asked(sinks, driver, b, "q", None), plan)
        case _:
            _micro_batch(world, driver, b, plan)


def _sink(world: World, a: int, b: int) -> None:
    world.effects.reset()
    planner = a % 16 if a % 16 < 4 else 9
    _any_write(world, b, Plan(Death(planner=planner)))


def _troubled(trouble: Trouble) -> Do:
    """A write in which a process dies, an effect fails, or something else happens."""

    def step(world: World, a: int, b: int) -> None:
        death = Death(alone=a % 3 == 0, silent=a % 5 == 0, frames=a % 4)
        point, happens = a % 50 + 1, a // 50

        def begin() -> None:
            world.effects.plan(trouble, point, lambda: _meanwhile(world, happens, b))

        if a % 4 == 0:
            begin()
        _any_write(world, b, Plan(death, begin if a % 4 else lambda: None))
        world.effects.reset()

    return step


def _meanwhile(world: World, a: int, b: int) -> None:
    """What happens while a driver does not get on."""
    sinks = sinks_of(world)
    driver = 1 - int(b % 11 == 0)
    match a % 8:
        case 0 | 1:
            for number in range(a // 8 % 3 + 1):
                _micro_batch(world, driver, b + number)
        case 2:
            for version in sinks.versions.values():
                version.repeated = version.repeated or not version.done
            sinks.drivers[1 - driver].send_again()
            check_rows(world, sinks)
        case 3:
            clean_up(world)
        case 4:
            for ml in world.parts:
                world.state.unload(ml)
                trim(world, ml)
        case 5:
            world.clock.advance((2, 50, 400, 60 * 30)[b % 4] * MINUTE)
        case 6:
            server = ("broker", "storage", "admin")[b % 3]
            world.outages.begin(server, (20, 200)[a % 2] * MINUTE, silent=b % 2 == 0)
        case _:
            sinks.producers.crash(b % 4)


def _sink_resume(world: World, a: int, b: int) -> None:
    """A batch without a name that failed is gone on with, as its error says."""
    sinks = sinks_of(world)
    if not sinks.failed:
        return
    world.effects.reset()
    app, number, at = sinks.failed.pop()
    if world.clock.now_ms - at < 5 * 24 * 60 * MINUTE:
        options = {"txnAppId": app, "txnVersion": str(number)}
        _run(world, 0, _asked(sinks, 0, b, "q", None, **options))


def _sink_rerun(world: World, a: int, b: int) -> None:
    """The checkpoint is set back: a driver runs micro-batches once more."""
    sinks = sinks_of(world)
    world.effects.reset()
    if sinks.committed >= 0:
        sinks.next[1] = a % (sinks.committed + 1)
        _micro_batch(world, 1, b)


def _sink_settle(world: World, a: int, b: int) -> None:
    """All servers answer: the stream goes on, exactly once if anybody can tell what was sent."""
    sinks = sinks_of(world)
    world.effects.reset()
    world.mend()
    sinks.producers.mend()
    sinks.producers.may_enable, world.times.repeats_puts = True, False
    world.clock.advance(3 * MINUTE)
    for ml in world.parts:
        for transaction in sorted(ml.open):
            world.state.end_transaction(ml, transaction, commit=True)
    sinks.restart(0)
    _require_end(
        world,
        lambda: sinks.versions[STREAM, sinks.next[0]],
        lambda **options: _micro_batch(world, 0, b, **options),
    )
    world.require(_micro_batch(world, 0, b + 5), "a stream is stuck behind a batch")
    nightly = sinks.versions.get((_NIGHTLY, sinks.batch))
    if nightly is not None:
        named = {"txnAppId": _NIGHTLY, "txnVersion": str(sinks.batch)}
        _require_end(
            world,
            lambda: nightly,
            lambda **options: _run(world, 0, _asked(sinks, 0, b, "q", None, **named, **options)),
        )
    check_rows(world, sinks)


def _require_end(world: World, version: Callable[[], Version], run: Callable[..., bool]) -> None:
    """A write has an end, exactly once if anybody can tell what was sent."""
    if any(run() for _ in range(3)):
        return
    may_not = may_never_end(world, sinks_of(world), version())
    world.require(may_not, "a write is stuck for good")
    world.require(run(delivery="at-least-once"), "a write is stuck, at least once")


SINK_KINDS: dict[str, Do] = {
    **FAULT_KINDS,
    "sink": _sink,
    "sink_crash": _troubled("crash"),
    "sink_fail": _troubled("fail"),
    "sink_meet": _troubled("meet"),
    "sink_resume": _sink_resume,
    "sink_rerun": _sink_rerun,
    "sink_restart": lambda world, a, b: sinks_of(world).restart(a % 2),
    "sink_settle": _sink_settle,
}
