"""``python -m spark_ext.session.jars``: fill the cache before the first query."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from reader.errors import PulsarLakeError
from spark_ext.session.jars import build_shim, jars_directory, lock_jars, prewarm


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m spark_ext.session.jars", description=__doc__)
    parser.add_argument("--shim", metavar="DIR", type=Path, help="only compile the shim into DIR")
    parser.add_argument("--lock", action="store_true", help="only write the jars' hashes anew")
    options = parser.parse_args(arguments)
    try:
        if options.lock:
            lock_jars()
            return 0
        if options.shim:
            sys.stdout.write(f"{build_shim(options.shim)}\n")
            return 0
        sys.stdout.write(f"{jars_directory()}\n")
        prewarm()
    except PulsarLakeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
