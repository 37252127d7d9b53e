"""`python -m tests.faults --seed N --seconds S`: exit code 0 if every answer was right.

1 if none was, too, or if an error says nothing to who reads it."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.faults.report import as_json
from tests.faults.run import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    # Kept after a failure: the settings and the offloader's log are in it.
    directory = Path(tempfile.mkdtemp(prefix="pulsar-lake-faults-"))
    say(f"working in {directory}")
    report = run(options.seed, options.seconds, directory, say)
    shutil.rmtree(directory)
    print(report.text())
    if options.json:
        options.json.write_text(as_json(report))
    sys.exit(1 if report.bugs or not report.answers else 0)


if __name__ == "__main__":
    main()
