"""`python -m benchmarks`: exit code 0, or 1 if a case is broken."""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
import textwrap
import time
import traceback
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from demo.screen import Screen, own_output

_SEED = 20_260_101
_SAMPLE = 20_000
_ROWS, _QUICK_ROWS = 500_000, 20_000
_REPEATS, _QUICK_REPEATS = 5, 2
_LEDGERS = 8  # of each partition
_PARTITIONS = 4
_BATCH = 100


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="See __init__.py.")
    parser.add_argument("--quick", action="store_true", help="few rows, few repeats")
    parser.add_argument("--rows", type=int, help=f"default {_ROWS:,}")
    parser.add_argument("--repeats", type=int, help=f"of each case; default {_REPEATS}")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    asked = parser.parse_args()
    rows = asked.rows or (_QUICK_ROWS if asked.quick else _ROWS)
    repeats = asked.repeats or (_QUICK_REPEATS if asked.quick else _REPEATS)
    asked.out.mkdir(parents=True, exist_ok=True)
    log = asked.out / "bench.log"
    # SIGTERM cleans up as Ctrl-C does, and both do so in a background job of a script, too.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with own_output(log) as out:
        screen = Screen(out)
        try:
            _run(screen, rows, repeats, asked.out)
        except KeyboardInterrupt:
            screen.title("\nStopped; every process of the benchmark has been ended.")
            return 130
        except Exception as error:  # noqa: BLE001 - whatever it is, say it in one line
            traceback.print_exc()
            screen.check(screen.current, False, _first_line(error))
        if screen.failed:
            screen.line(f"more in {log}")
            screen.end()
        return 1 if screen.failed else 0


def _run(screen: Screen, rows: int, repeats: int, out: Path) -> None:
    # After the redirection of standard output: Spark and Arrow may print.
    from benchmarks.bench import Bench, Result
    from benchmarks.cases import CASES
    from benchmarks.events import SCHEMA, events
    from benchmarks.results import chart, save
    from demo.stage import Stage
    from spark_ext import PulsarLake
    from tests.cluster.publish import json_schema

    screen.title(f"pulsar-lake benchmarks: {rows:,} rows, {repeats} runs after a warm-up")
    results: list[Result] = []
    entries = max(1, rows // (_BATCH * _PARTITIONS * _LEDGERS))
    with ExitStack() as stack:
        with screen.step("Start a Pulsar (ZooKeeper, 3 bookies, a broker) and an S3 server"):
            stage = stack.enter_context(
                Stage(
                    "events",
                    partitions=_PARTITIONS,
                    split_bytes="128MiB",
                    max_entries_per_ledger=entries,
                )
            )
        schema = json_schema(SCHEMA)
        with screen.step("Publish"):
            results += _describe(screen, [one.value for one in _sample(rows)], schema)
            begun = time.perf_counter()
            stage.publish(events(rows, _SEED), schema)
            took = time.perf_counter() - begun
            stage.seal()
            screen.line(f"published in {took:.1f} s, {rows / took:,.0f} rows/s, one producer")
        with screen.step("Offload, and keep BookKeeper's copy"):
            begun = time.perf_counter()
            _, log = stage.command("offload", "--once", "--now", stage.topic)
            took = time.perf_counter() - begun
            for line in log:
                if " committed as version " in line:
                    screen.line(line.partition(f"{stage.topic}: ")[2])
            results.append(Result.of("offload", "command", "s", [took]))
        lake = stack.enter_context(PulsarLake(stage.config))
        # The first thing to happen on the way out: nothing interrupts the cleaning up.
        stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)
        bench = Bench(stage, lake, screen, rows, repeats)
        for name, run in CASES.items():
            with screen.step(name):
                try:
                    results += run(bench)
                except Exception as error:  # noqa: BLE001 - the other cases still run
                    traceback.print_exc()
                    screen.check(name, False, _first_line(error))
        settings = {"rows": rows, "repeats": repeats, "partitions": _PARTITIONS, "seed": _SEED}
        with screen.step("Write down"):
            save(out / "latest.json", results, settings)
            chart(out / "latest.png", results, rows)
            screen.line(f"{out / 'latest.json'}, {out / 'latest.png'}")


def _sample(rows: int) -> list[Any]:
    from benchmarks.events import events

    return list(itertools.islice(events(rows, _SEED), _SAMPLE))


def _describe(screen: Screen, values: list[dict[str, Any]], schema: Any) -> list[Any]:
    """Size, compressibility and the fields' entropy: what the numbers hold for."""
    from benchmarks.bench import Result
    from benchmarks.events import entropy

    payloads = [schema.encode(value) for value in values]
    joined = b"".join(payloads)
    size = len(joined) / len(payloads)
    ratio = len(joined) / len(zlib.compress(joined, 6))
    bits = entropy(values)
    screen.line(f"JSON, {size:.0f} bytes a row, zlib makes it {ratio:.1f} times smaller")
    shown = ", ".join(f"{name} {value:.1f}" for name, value in bits.items())
    for line in textwrap.wrap(f"bits of entropy in {len(values):,} rows: {shown}", 90):
        screen.line(line)
    return [
        Result.of("data", "payload", "bytes", [size]),
        Result.of("data", "zlib ratio", "ratio", [ratio]),
        *(Result.of("data", f"entropy of {n}", "bits", [v]) for n, v in bits.items()),
    ]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
