"""The table of results: what each mutation is, which test found it, and after how long."""

from collections.abc import Sequence

from tests.mutations.runner import Outcome, Result, Stage

_HEAD = (
    "| mutation | what a user would lose | found by | stage | seconds |",
    "| --- | --- | --- | --- | ---: |",
)


def table(results: Sequence[Result]) -> str:
    """Return all results as Markdown, and what they sum up to."""
    return "\n".join([summary(results), "", *_HEAD, *map(line, results), ""])


def line(result: Result) -> str:
    """Return one row of the table."""
    one = result.mutation
    cells = (
        f"`{one.id}` ({one.file})",
        one.loss,
        _found(result),
        result.stage.name.lower(),
        f"{result.seconds:.0f}",
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def summary(results: Sequence[Result]) -> str:
    """Return how many were found, in which stage, and which were not."""
    found = [one for one in results if one.outcome is Outcome.FOUND]
    stages = ", ".join(
        f"{count} in stage {stage.name.lower()}"
        for stage in Stage
        if (count := sum(one.stage is stage for one in found))
    )
    parts = [f"{len(results)} mutations: {len(found)} found{f' ({stages})' if stages else ''}"]
    for outcome, text in ((Outcome.SURVIVED, "survived"), (Outcome.NOT_RUN, "not run")):
        if names := [one.mutation.id for one in results if one.outcome is outcome]:
            parts.append(f"{len(names)} {text}: {', '.join(names)}")
    return "; ".join(parts)


def _found(result: Result) -> str:
    if result.found_by is not None:
        return f"`{result.found_by}`" if result.found_by.startswith("tests/") else result.found_by
    servers = ", ".join(f"`{name}`" for name in result.mutation.server_tests)
    if result.outcome is Outcome.NOT_RUN:
        return f"not run: needs a server ({servers})"
    return "**SURVIVED**" + (f"; not run: {servers}" if servers and result.stage < 3 else "")
