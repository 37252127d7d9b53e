"""A topic to decoded Arrow in one process, against clients that go through the broker."""

import operator
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.contenders.peers import python_reader
from benchmarks.contenders.source import arrow_batches, values_given
from benchmarks.data.topics import (
    AVRO,
    JSON,
    STRIPED_BATCHES,
    STRIPED_JSON,
    STRIPED_UNBATCHED,
    TUNED_AVRO,
    TUNED_JSON,
    UNBATCHED,
    Published,
    TopicSpec,
)
from benchmarks.measure import Contender, Result, at_least, at_most, clocked_turns, paired
from benchmarks.servers import Servers
from offloader.config import Config

PYTHON, JAVA = "pulsar-client, not decoded", "Java client, decoded"
_SHORT = {PYTHON: "pulsar-client", JAVA: "the Java client"}
_PREFIX = {
    STRIPED_UNBATCHED.name: "unbatched: ",
    STRIPED_BATCHES.name: "2-3 an entry: ",
    TUNED_JSON.name: "JSON: ",
    TUNED_AVRO.name: "Avro: ",
}


@dataclass(frozen=True, slots=True)
class Targets:
    """python, java: how many times faster than the clients; cpu: which share of the CPU time that
    they and the servers take together. What is None is not compared, or only told."""

    python: float
    java: float | None = None
    cpu: float | None = None


_JSON, _AVRO = Targets(5, java=3, cpu=0.25), Targets(7, java=6, cpu=0.2)


@dataclass(frozen=True, slots=True)
class Turns:
    """What the clocks said, by contender: wall, this process's CPU, the servers', everything's."""

    wall: dict[str, list[float]]
    own: dict[str, list[float]]
    servers: dict[str, list[float]]
    cpu: dict[str, list[float]]


def _run(specs: Sequence[TopicSpec], targets: Targets, bench: Bench) -> list[Result]:
    results = []
    for spec in specs:
        topic = bench.topic(spec)
        results += _compared(bench, topic, targets, _PREFIX.get(spec.name, ""))
    return results


def _run_tuned(bench: Bench) -> list[Result]:
    return _run((TUNED_JSON,), _JSON, bench) + _run((TUNED_AVRO,), _AVRO, bench)


def _run_broker(spec: TopicSpec, targets: Targets, bench: Bench) -> list[Result]:
    topic = bench.topic(spec)
    results = _compared(bench, topic, targets, "", tier="broker")
    config = bench.world.config("none")
    missing = values_given(config, topic, "bookkeeper") - values_given(config, topic, "broker")
    if missing:
        bench.say(f"columns with fewer values: {', '.join(sorted(missing))}")
    lost = [float(len(missing))]
    results.append(
        bench.result("columns with fewer values than from the bookies", "columns", lost, at_most(0))
    )
    return results


def _compared(
    bench: Bench, topic: Published, targets: Targets, prefix: str, tier: str = "bookkeeper"
) -> list[Result]:
    servers = bench.world.servers(topic.spec.layout)
    config = bench.world.config("none", topic.spec.layout)
    ours = f"{'BookKeeper' if tier == 'bookkeeper' else 'broker tier'} to Arrow"
    turns = _turns(bench, servers, config, topic, ours, tier, java=targets.java is not None)
    clients = {PYTHON: targets.python} | ({JAVA: targets.java} if targets.java else {})
    results = _told(bench, topic, turns, ours, prefix)
    for client, least in clients.items():
        name = _SHORT[client]
        faster = paired(turns.wall[client], turns.wall[ours], operator.truediv)
        cpu = paired(turns.cpu[ours], turns.cpu[client], operator.truediv)
        most = at_most(targets.cpu) if targets.cpu else None
        results += [
            bench.result(f"{prefix}faster than {name}", "x", faster, at_least(least)),
            bench.result(f"{prefix}CPU of all against {name}", "x", cpu, most),
        ]
    return results


def _turns(
    bench: Bench,
    servers: Servers,
    config: Config,
    topic: Published,
    ours: str,
    tier: str,
    *,
    java: bool,
) -> Turns:
    client = servers.client
    cents = (topic.total("cents"),) if java else ()
    answer = (topic.rows, topic.sum_of_ids, *cents)
    contenders = {
        ours: Contender(lambda: _arrow(config, topic, tier, bool(cents)), answer),
        PYTHON: Contender(lambda: python_reader(client, topic), (topic.rows, topic.payload_bytes)),
    }
    if java:
        contenders[JAVA] = Contender(lambda: servers.java.read(topic), answer)
    clocks = [time.perf_counter, time.process_time, servers.servers_cpu, servers.cpu]
    return Turns(*clocked_turns(contenders, bench.repeats, clocks))


def _told(bench: Bench, topic: Published, turns: Turns, ours: str, prefix: str) -> list[Result]:
    def a_million(seconds: list[float]) -> list[float]:
        return [one / topic.rows * 1e6 for one in seconds]

    def a_second(seconds: list[float]) -> list[float]:
        return [topic.rows / one for one in seconds]

    entry = [one / topic.entries * 1e6 for one in turns.own[ours]]
    return [
        *(
            bench.result(f"{prefix}{name}", "rows/s", a_second(taken))
            for name, taken in turns.wall.items()
        ),
        bench.result(f"{prefix}ours, a CPU second", "rows/s", a_second(turns.own[ours])),
        bench.result(f"{prefix}ours, CPU an entry", "µs", entry),
        *(
            bench.result(
                f"{prefix}CPU of all, {_SHORT.get(name, 'ours')}", "s/M rows", a_million(taken)
            )
            for name, taken in turns.cpu.items()
        ),
        *(
            bench.result(
                f"{prefix}CPU of servers, {_SHORT.get(name, 'ours')}", "s/M rows", a_million(taken)
            )
            for name, taken in turns.servers.items()
        ),
    ]


def _arrow(config: Config, topic: Published, tier: str, with_cents: bool) -> tuple[int, ...]:
    """Decode every column of every row: (rows, sum of ids, sum of cents)."""
    rows = ids = cents = 0
    for batch in arrow_batches(config, topic, tier=tier):
        rows += batch.num_rows
        ids += pc.sum(batch["id"]).as_py()
        cents += pc.sum(batch["cents"]).as_py() if with_cents else 0
    return (rows, ids, cents) if with_cents else (rows, ids)


def _case(name: str, targets: Targets, *specs: TopicSpec) -> Case:
    about = f"BookKeeper to Arrow, one process, topic {' and '.join(s.name for s in specs)}"
    return Case(name, f"{about}, beside clients", partial(_run, specs, targets), specs)


CASES = (
    _case("reader_json", _JSON, JSON),
    _case("reader_avro", _AVRO, AVRO),
    Case(
        "reader_tuned",
        "as reader_json and reader_avro, of bookies with a larger read buffer",
        _run_tuned,
        (TUNED_JSON, TUNED_AVRO),
    ),
    _case("reader_unbatched", Targets(20), UNBATCHED),
    Case(
        "reader_broker",
        f"the broker tier to Arrow, all columns, topic {JSON.name}, beside pulsar-client",
        partial(_run_broker, JSON, Targets(4)),
        (JSON,),
    ),
    _case("reader_striped", Targets(5), STRIPED_JSON),
    _case("reader_striped_small", Targets(10), STRIPED_UNBATCHED, STRIPED_BATCHES),
)
