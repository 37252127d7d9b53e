"""`python -m tests.simulation --seed N --histories M`: random histories; 1 if one failed."""

import argparse
import sys

from tests.simulation.histories import HISTORIES
from tests.simulation.liveness.run import late_topics
from tests.simulation.run import run_many, shortest


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--failures", type=int, default=5, help="end after so many")
    parser.add_argument("--without", default="", help="kinds of steps, separated by commas")
    for kind in HISTORIES:
        parser.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind)
    parser.add_argument("--liveness", action="store_true", help="of the scheduler alone")
    options = parser.parse_args()
    drawn = HISTORIES[options.kind or "world"].draw

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    without = [one for one in options.without.split(",") if one]
    seeds = range(options.seed, options.seed + options.histories)
    if options.liveness:
        late = late_topics(seeds, processes=options.processes, most=options.failures, log=say)
        sys.exit(1 if late else 0)
    report = run_many(
        seeds,
        drawn=drawn,
        processes=options.processes,
        without=without,
        most_failures=options.failures,
        say=say,
    )
    print(report.text())
    for seed in sorted(report.failed)[:3]:
        print(shortest(seed, without, drawn))
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
