"""`python -m benchmarks`: exit code 0, 1 if a case is broken, 2 for wrong usage.

A missed target is no failure: it is said, and written down as `"met": false`.
"""

import argparse
import signal
import sys
import textwrap
import time
import traceback
from pathlib import Path
from typing import Any

from testbed.screen import Screen, own_output

_REPEATS, _QUICK_REPEATS = 5, 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="See __init__.py.")
    parser.add_argument(
        "--quick", action="store_true", help="few rows and repeats: only checks that it runs"
    )
    parser.add_argument("--case", default="", metavar="NAME[,NAME]", help="only these cases")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument(
        "--repeats", type=int, help=f"repeats of each measurement; default {_REPEATS}"
    )
    parser.add_argument("--out", type=Path, help="default benchmarks/results[/quick]")
    asked = parser.parse_args()
    out = asked.out or Path("benchmarks/results", "quick" if asked.quick else "")
    repeats = asked.repeats or (_QUICK_REPEATS if asked.quick else _REPEATS)
    names = [name.strip() for name in asked.case.split(",") if name.strip()]
    out.mkdir(parents=True, exist_ok=True)
    # SIGTERM cleans up like Ctrl-C, and both work in a script's background job as well.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with own_output(out / "bench.log") as own:
        screen = Screen(own)
        # After the redirection of standard output: Spark and Arrow may print.
        from benchmarks.cases import CASES

        if asked.list:
            screen.table(["case", "what"], [[one.name, one.about] for one in CASES.values()], 2)
            return 0
        if unknown := [name for name in names if name not in CASES]:
            screen.line(f"no case {unknown[0]}; there are: {', '.join(CASES)}")
            return 2
        try:
            _run(screen, names or list(CASES), repeats, asked.quick, out)
        except KeyboardInterrupt:
            screen.title("\nStopped; all processes of the benchmark have ended.")
            return 130
        except Exception as error:  # noqa: BLE001 - any error becomes one line
            traceback.print_exc()
            screen.check(screen.current, False, _first_line(error))
        if screen.failed:
            for name in screen.failed:
                screen.line(f"BROKEN: {name}")
            screen.line(f"details in {out / 'bench.log'}")
        return 1 if screen.failed else 0


def _run(screen: Screen, names: list[str], repeats: int, quick: bool, out: Path) -> None:
    from benchmarks.case import Bench
    from benchmarks.cases import CASES
    from benchmarks.chart import chart
    from benchmarks.results import RESULTS, as_json, context, row, save
    from benchmarks.world import World

    how = "quick: numbers of few rows say little" if quick else "full size"
    screen.title(f"pulsar-lake benchmarks: {how}; medians of {repeats} runs after a warm-up")
    if len(names) < len(CASES):
        screen.line(f"{len(names)} of {len(CASES)} cases; what is known of the others stays")
    settings = {"quick": quick, "repeats": repeats, "cases": names}
    about = context(settings)
    results: list[Any] = []
    with World(quick=quick) as world:
        for number, name in enumerate(names):
            case = CASES[name]
            world.stop_except({spec.layout for one in names[number:] for spec in CASES[one].topics})
            with screen.step(f"{name}: {case.about}"):
                try:
                    for spec in case.topics:
                        _publish(screen, world, spec)
                    found = case.run(Bench(name, world, repeats, quick, screen.line))
                except Exception as error:  # noqa: BLE001 - the other cases still run
                    traceback.print_exc()
                    screen.check(name, False, _first_line(error))
                    continue
                results += found
                known = save(out, found, about, list(CASES))  # now: a later case may be stopped
                chart(out / "latest.svg", known)
                header = ["", "median", "least to greatest", "target", "met"]
                screen.table(header, [row(as_json(one, "")) for one in found])
        # Called first on exit, so that nothing interrupts the clean-up.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    wanted = [one for one in results if one.target]
    met = sum(bool(one.met) for one in wanted)
    screen.title(f"\n{met} of {len(wanted)} targets met; {out / RESULTS}, {out / 'latest.svg'}")


def _publish(screen: Screen, world: Any, spec: Any) -> None:
    from benchmarks.data.events import entropy

    if world.has(spec):
        return
    servers = world.servers(spec.layout)
    _ = servers.client, servers.admin  # their start is not publishing
    begun = time.monotonic()
    topic = world.topic(spec)
    took = time.monotonic() - begun
    size, stored = topic.payload_bytes / topic.rows, world.stored_bytes(topic) / 1e6
    screen.line(
        f"published topic {spec.name}: {topic.rows:,} rows of {size:.0f} bytes in {took:.1f} s, "
        f"{stored:.0f} MB in BookKeeper"
    )
    bits = ", ".join(f"{name} {one:.1f}" for name, one in entropy(spec.sample()).items())
    for line in textwrap.wrap(f"bits of entropy a value: {bits}", 90):
        screen.line(line)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
