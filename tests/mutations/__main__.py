"""`python -m tests.mutations [--only id,…] [--stage unit]`: 1 if a mutation was not found."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.mutations.catalogue import CATALOGUE
from tests.mutations.mutation import MutationError
from tests.mutations.report import line, summary, table
from tests.mutations.runner import Outcome, Result, Stage, run_all
from tests.mutations.tree import MutatedTree

_ROOT = Path(__file__).parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--only", default="", help="ids of mutations, separated by commas")
    parser.add_argument(
        "--stage",
        choices=[stage.name.lower() for stage in Stage],
        default=Stage.TEST.name.lower(),
        help="how far a mutation goes that no test has found yet (test: all of `make test`)",
    )
    parser.add_argument("--out", type=Path, help="file for the table; otherwise standard output")
    parser.add_argument("--nice", type=int, default=0, help="for nice -n")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name]
    unknown = set(names) - {one.id for one in CATALOGUE}
    if unknown:
        parser.error(f"no such mutation: {', '.join(sorted(unknown))}")
    chosen = [one for one in CATALOGUE if not names or one.id in names]
    results: list[Result] = []

    def note(result: Result) -> None:
        results.append(result)
        print(line(result), file=sys.stderr, flush=True)
        if options.out is not None:
            options.out.write_text(table(results))

    with tempfile.TemporaryDirectory(prefix="pulsar-lake-mutations-") as copy:
        tree = MutatedTree(_ROOT, Path(copy), nice=options.nice)
        try:
            run_all(tree, chosen, Stage[options.stage.upper()], note)
        except MutationError as error:
            sys.exit(f"python -m tests.mutations: {error}")
    print(summary(results) if options.out is not None else table(results))
    sys.exit(0 if all(one.outcome is Outcome.FOUND for one in results) else 1)


if __name__ == "__main__":
    main()
