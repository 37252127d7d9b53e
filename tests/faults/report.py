"""What came of a run, for people and for programs."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a run; a wrong answer ends it at once.

    ``stream``: of the streaming queries, what happened how often. ``bugs``: errors, of queries, of
    streams and of the offloader, that say nothing to who reads them.
    """

    seed: int
    seconds: float
    messages: int
    rows_compared: int
    answers: dict[str, int]
    clear_errors: dict[str, int]
    query_seconds: tuple[float, float]
    faults: dict[str, int]
    requests_hit: int
    offloader_killed: int
    offloader_errors: dict[str, int]
    commits: int
    lag_seconds: float
    memory: dict[str, tuple[float, float]]
    files: dict[str, tuple[float, float]]
    stream: dict[str, int]
    stream_errors: dict[str, int]
    bugs: list[str]

    @property
    def queries(self) -> int:
        return sum(self.answers.values()) + sum(self.clear_errors.values())

    def text(self) -> str:
        """For people."""
        asked = ", ".join(f"{kind} {count}" for kind, count in sorted(self.answers.items()))
        lines = [
            f"seed {self.seed}, {self.seconds:.0f} s",
            f"{self.messages:,} messages published, each of them once in its table at the end, "
            f"{self.lag_seconds:.0f} s after the last",
            f"{self.queries} queries ({asked} right; {sum(self.clear_errors.values())} clear "
            f"errors; 0 wrong), {self.rows_compared:,} rows compared; "
            f"median {self.query_seconds[0]:.1f} s, slowest {self.query_seconds[1]:.1f} s",
            f"{sum(self.faults.values())} faults, {self.requests_hit} requests to the store hit; "
            f"offloader killed {self.offloader_killed} times; {self.commits} commits",
            *(f"    {count:4d}  {name}" for name, count in sorted(self.faults.items())),
            "the streams' rows and their state are what was published; "
            + ", ".join(f"{name} {count:,}" for name, count in self.stream.items()),
            "errors of queries:",
            *(f"    {count:4d}  {text}" for text, count in sorted(self.clear_errors.items())),
            "errors of streams, each started again:",
            *(f"    {count:4d}  {text}" for text, count in sorted(self.stream_errors.items())),
            "errors of the offloader:",
            *(f"    {count:4d}  {text}" for text, count in sorted(self.offloader_errors.items())),
            "first and last third of the time that the offloader was not killed:",
            *(
                f"    {name}: {self.memory[name][0]:.0f} and {self.memory[name][1]:.0f} MiB, "
                f"{self.files[name][0]:.0f} and {self.files[name][1]:.0f} open files"
                for name in self.memory
            ),
            *(f"BUG: {text}" for text in self.bugs),
        ]
        return "\n".join(lines)


def as_json(report: Report) -> str:
    """For programs."""
    return json.dumps({name: getattr(report, name) for name in Report.__dataclass_fields__})
