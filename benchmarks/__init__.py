"""`make bench`: Parquet, BookKeeper and broker side by side, on a real Pulsar.

- `events`: the rows, made up from a seed;
- `bench`: what a case is given, and how it measures;
- `cases`: one module a case, each with `NAME` and `run(bench) -> list[Result]`;
- `results`: what was measured, as JSON and as a chart;
- `__main__`: the runner.

The stage (servers, topic, command line) and the printing are the demo's. Numbers are medians
of runs that take turns after one warm-up, so that a slow moment of the machine hits all alike.
"""
