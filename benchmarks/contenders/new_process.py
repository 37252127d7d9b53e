"""`python -m benchmarks.contenders.new_process SETTINGS QUERY COUNT`: a query, run COUNT times.

In a new process. Prints a line of JSON: the seconds of each, and the rows of the last. The session,
with one query that reads nothing, is there before the first.
"""

import json
import sys
import time
from pathlib import Path

from spark_ext import PulsarLake


def main() -> int:
    settings, query, count = sys.argv[1:]
    with PulsarLake(json.loads(Path(settings).read_text())) as lake:
        lake.spark.sql("SELECT 1").collect()
        seconds = []
        rows: list[list[object]] = []
        for _ in range(int(count)):
            begun = time.perf_counter()
            rows = [list(row) for row in lake.spark.sql(query).collect()]
            seconds.append(time.perf_counter() - begun)
    print(json.dumps({"seconds": seconds, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
