"""``python -m spark_ext.session.conf --config FILE``: settings for Spark's own shells and servers.

    python -m spark_ext.session.conf --config lake.toml > lake.conf
    spark-sql --properties-file lake.conf
    spark-submit --properties-file lake.conf --class …HiveThriftServer2

Prints a properties file. It contains the storage's keys if ``[storage.options]`` has them: keep it
private. Spark starts Python through ``PYSPARK_PYTHON``, which no setting replaces.
"""

import argparse
import sys

from reader.errors import PulsarLakeError
from spark_ext.session.builder import session_conf
from spark_ext.session.handoff import load_settings


def properties(path: str | None, *, quiet: bool = True) -> str:
    """The text of a ``spark-defaults.conf`` for the settings file ``path``."""
    conf = session_conf(path, quiet=quiet)
    conf.setdefault("spark.master", load_settings(path).spark.master)
    lines = [
        "# pulsar-lake. Before the shell or server:",
        f"#   export PYSPARK_PYTHON={sys.executable}",
        *(f"{key} {_escaped(value)}" for key, value in sorted(conf.items())),
    ]
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    # java.util.Properties: a backslash escapes, a line ends a value.
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m spark_ext.session.conf")
    parser.add_argument("--config", metavar="FILE", help="settings (TOML)")
    parser.add_argument("--verbose", action="store_true", help="keep Spark's own logging")
    options = parser.parse_args(arguments)
    try:
        sys.stdout.write(properties(options.config, quiet=not options.verbose))
    except PulsarLakeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
