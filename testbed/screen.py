"""How demo and benchmarks print: numbered steps, short lines, tables, checks that are counted."""

import io
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

_WIDTH = 100
_INDENT = 4


class Screen:
    """Prints to `out`; keeps the names of the checks that failed."""

    def __init__(self, out: TextIO) -> None:
        console = Console(file=out, highlight=False)
        if not console.is_terminal or console.width > _WIDTH:
            console = Console(file=out, highlight=False, width=_WIDTH)
        self._console = console
        self._begun = time.monotonic()
        self._steps = 0
        self.checks = 0
        self.failed: list[str] = []
        self.current = ""
        """The title of the step that runs, or ran last."""

    def title(self, text: str) -> None:
        self._console.print(f"[bold]{escape(text)}[/bold]")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A numbered step: its title first, how long it took last."""
        self._steps += 1
        self.current = title
        self._console.print(f"\n[bold cyan]{self._steps:>2}[/]  [bold]{escape(title)}[/]")
        begun = time.monotonic()
        with self._console.status("working …", spinner="dots"):
            yield
        self._console.print(f"    [dim]({time.monotonic() - begun:.1f} s)[/dim]")

    def line(self, text: str) -> None:
        self._console.print(" " * _INDENT + escape(text), soft_wrap=True)

    def quote(self, text: str) -> None:
        """Something to be typed: a command or SQL, several lines perhaps."""
        for line in text.splitlines():
            self._console.print(" " * _INDENT + f"[green]{escape(line)}[/]", soft_wrap=True)

    def gap(self) -> None:
        self._console.print()

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]], left: int = 1) -> None:
        """The first `left` columns are text, the others numbers, aligned right."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", padding=(0, 1))
        for position, name in enumerate(header):
            justify = "left" if position < left else "right"
            table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
        for row in rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        # On paper of its own: what is captured beside a spinner contains the spinner.
        paper = Console(
            file=io.StringIO(), width=self._console.width, force_terminal=self._console.is_terminal
        )
        with paper.capture() as capture:
            paper.print(table)
        for line in capture.get().splitlines():
            if line.strip():
                self._console.print(Text.from_ansi(" " * _INDENT + line.rstrip()), soft_wrap=True)

    def check(self, name: str, ok: bool, detail: str = "") -> None:
        """Print whether it holds; `detail` says what was seen if it does not."""
        self.checks += 1
        if ok:
            self._console.print(f"    [green]✓[/] {escape(name)}", soft_wrap=True)
        else:
            self.failed.append(name)
            why = f": {detail}" if detail else ""
            self._console.print(f"    [bold red]✗ {escape(name)}{escape(why)}[/]", soft_wrap=True)

    def end(self) -> None:
        """The last lines: how many checks, how long, and each check that failed by its name."""
        took = f"{time.monotonic() - self._begun:.0f} s"
        self._console.print()
        if self.failed:
            for name in self.failed:
                self._console.print(f"[bold red]FAILED: {escape(name)}[/]", soft_wrap=True)
            text = f"{len(self.failed)} of {self.checks} checks failed"
            self._console.print(f"[bold red]{text}[/] in {took}")
        else:
            self._console.print(f"[bold green]All {self.checks} checks passed[/] in {took}")


@contextmanager
def own_output(log: Path) -> Iterator[TextIO]:
    """Send what Spark's JVM, its workers and libraries print to `log`; yield our own output."""
    with os.fdopen(os.dup(1), "w", buffering=1) as out, log.open("w") as file:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        yield out
