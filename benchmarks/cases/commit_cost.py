"""CPU of everything of ours for a commit, a ledger and a row, each by itself.

Of the offloader's process, Spark's JVM and its Python workers, from the beginning of the first
turn to the end of the last, with what they do in between. Tables are there, and Spark is warm.
"""

import time
from typing import Any

from benchmarks.case import Bench, Case
from benchmarks.cases.day import DAYS, Costs
from benchmarks.data.topics import AVRO, JSON, UNBATCHED
from benchmarks.measure import BrokenCaseError, Result, at_most
from benchmarks.offload_process import OffloadProcess
from benchmarks.servers import NAMESPACE
from testbed.publish import publish

_MESSAGES = 50
_MOST = 0.060
_OBSERVED = 4 / 3
"""How often an hour a topic is looked at where nothing is due (``next_turn``): its period is half
an hour to an hour, by its name."""


def _run(bench: Bench) -> list[Result]:
    world = bench.world
    warm, count = (2, 3) if bench.quick else (15, 20)
    repeats = 1 if bench.quick else bench.repeats
    small = world.settings("commit-cost", offload={"grace": "0s"})
    topic = _Topic(bench, "commit-cost")
    with OffloadProcess(world.directory / "offloader.log") as offloader:
        for _ in range(warm):
            topic.seal()
            _turn(offloader, small, topic.name, 1)
        alone, parts = [], []
        for _ in range(repeats):
            before = offloader.cpu()
            for _ in range(count):
                topic.seal()
                _turn(offloader, small, topic.name, 1)
            parts.append(offloader.cpu() - before)
            alone.append(parts[-1].all / count)
        idle = _looking(bench, offloader, small, topic.name)
        ledger = _ledgers(bench, offloader, small, topic, min(alone))
        rows = {spec.name: _rows(bench, offloader, spec.name) for spec in _SPECS}
    ms = [[1000 * value / count for value in (one.own, one.jvm, one.workers)] for one in parts]
    costs = Costs(max(rows.values()), ledger, sorted(alone)[len(alone) // 2], idle)
    names = ("the offloader", "Spark's JVM", "Python workers")
    return [
        bench.result("a commit of one small ledger, in all", "s", alone, at_most(_MOST)),
        *(
            bench.result(f"of that {name}", "ms", [one[number] for one in ms])
            for number, name in enumerate(names)
        ),
        bench.result("a small ledger more in a commit", "ms", [1000 * ledger]),
        *(bench.result(f"a row, {name}", "µs", [1e6 * one]) for name, one in rows.items()),
        bench.result("an idle topic, an hour", "ms", [1000 * idle]),
        *_days(bench, costs),
    ]


_SPECS = (AVRO, JSON, UNBATCHED)


def _days(bench: Bench, costs: Costs) -> list[Result]:
    found = []
    for day in DAYS:
        cores = day.cores(costs)
        each = ", ".join(f"{what} {one:.3f}" for what, one in cores.items())
        bench.say(f"a day of 3,000 topics, 6 billion messages, {day.name}: {each} cores")
        found.append(
            bench.result(f"the day, {day.name}", "cores", [sum(cores.values())], at_most(1))
        )
    return found


class _Topic:
    """A topic that gets small ledgers one by one."""

    def __init__(self, bench: Bench, name: str) -> None:
        self._world = bench.world
        self.name = f"{NAMESPACE}/{name}"
        self._world.admin.create_topic(self.name)

    def seal(self) -> None:
        values = [str(n).encode() for n in range(_MESSAGES)]
        publish(self._world.client, self.name, values, batch=10)
        self._world.admin.seal(self.name)


def _turn(
    offloader: OffloadProcess, settings: dict[str, Any], topic: str, ledgers: int
) -> dict[str, Any]:
    done = offloader.turn(settings, topic)
    if done.get("ledgers") != ledgers or done["rows"] != ledgers * _MESSAGES:
        raise BrokenCaseError(f"a turn of {ledgers} ledgers committed {done}")
    return done


def _looking(
    bench: Bench, offloader: OffloadProcess, settings: dict[str, Any], topic: str
) -> float:
    """CPU seconds an hour of a topic of which nothing is due."""
    looks = 5 if bench.quick else 100
    before = offloader.cpu()
    for _ in range(looks):
        if offloader.turn(settings, topic):
            raise BrokenCaseError("there was something to commit")
    return _OBSERVED * (offloader.cpu() - before).all / looks


def _ledgers(
    bench: Bench, offloader: OffloadProcess, settings: dict[str, Any], topic: _Topic, commit: float
) -> float:
    """CPU seconds of a ledger that is not the only one of its commit."""
    many = 10 if bench.quick else 100
    for _ in range(many):
        topic.seal()
    before = offloader.cpu()
    _turn(offloader, settings, topic.name, many)
    time.sleep(1)
    return max(0.0, (offloader.cpu() - before).all - commit) / (many - 1)


def _rows(bench: Bench, offloader: OffloadProcess, name: str) -> float:
    """CPU seconds of a row, all else of its commit included; the second of two turns."""
    topic = bench.topic(next(one for one in _SPECS if one.name == name))
    seconds = []
    for number in range(2):
        settings = bench.world.settings(f"row-{name}-{number}")
        before = offloader.cpu()
        done = offloader.turn(settings, topic.name)
        if done.get("rows") != topic.rows:
            raise BrokenCaseError(f"{done} of {topic.rows} rows")
        seconds.append((offloader.cpu() - before).all)
    return seconds[-1] / topic.rows


CASES = (
    Case("commit_cost", "CPU of a commit, a ledger, a row, and of a day of them", _run, _SPECS),
)
