"""``pulsar-lake check``: a line for each thing that has to be right, with the fix if it is not."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, NoReturn

import typer

from offloader.cli.options import ConfigOption, settings
from offloader.cli.render import ReportFormat, ReportOption, print_rows, say, say_state
from offloader.config import Config

_SECONDS = 15.0
_COLORS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "bright_black"}


def check(
    kind: ReportOption = ReportFormat.table,
    seconds: Annotated[
        float,
        typer.Option(
            "--timeout", min=0.1, max=86_400, metavar="SECONDS", help="How long each may take."
        ),
    ] = _SECONDS,
    config: ConfigOption = None,
) -> None:
    """Check admin, rights, topics, bookies, broker, storage, clocks, Java, jars and free space.

    One line each: ok, warning, failed with the fix, or skipped with the reason. Nothing is changed
    but a scratch directory in the storage, which is deleted. Exit code 1 if any failed.
    """
    finish(run_checks(settings(config), kind, seconds))


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of all checks. ``hangs``: a check was given up, and its thread still runs."""

    failed: bool
    hangs: bool


def run_checks(
    config: Config, kind: ReportFormat = ReportFormat.table, seconds: float = _SECONDS
) -> Report:
    """Run the checks, and print each as soon as the checks before it are done."""
    from offloader.check import Checklist, Result, Run  # heavy: decoders, delta-rs

    as_json = kind is ReportFormat.json

    def tell(one: Result) -> None:
        if not as_json:
            fix = f"; fix: {one.fix}" if one.fix else ""
            say_state(one.state, _COLORS[one.state], f"{one.name:8} {one.finding}{fix}")

    def slow(name: str, waits_for: str) -> None:
        say(f"{name}: waiting for {waits_for or 'it'} ...", err=True)

    with Checklist(config, seconds) as checklist:
        run = Run(checklist.checks(), seconds=seconds, tell=tell, slow=slow)
        try:
            results = run.results()
        except KeyboardInterrupt:
            _leave(130)
        except BrokenPipeError:  # nobody reads on
            _leave(1)
    if as_json:
        columns = ("name", "state", "finding", "fix", "seconds")
        rows = [{name: getattr(one, name) for name in columns} for one in results]
        print_rows(columns, rows, kind)
    return Report(any(one.state == "failed" for one in results), run.gave_up)


def finish(report: Report) -> NoReturn:
    """End the command with the exit code."""
    code = 1 if report.failed else 0
    if report.hangs:
        _leave(code)
    raise typer.Exit(code)


def _leave(code: int) -> NoReturn:
    """End the process at once, while checks still run.

    At the interpreter's end pyarrow would wait for its requests, and no thread of a library may
    wake up during it.
    """
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)
