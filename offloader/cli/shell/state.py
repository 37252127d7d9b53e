"""What a shell has: one session, where results go, its switches. It runs a statement at a time."""

import time

from offloader.cli.render import say
from offloader.cli.results import ResultFile
from offloader.cli.shell.execution import Session
from offloader.cli.shell.runner import run_statement
from offloader.cli.shell.screen import Screen, Taken, rows_text
from offloader.cli.shell.statements import tokens, without_space
from reader.background import in_thread


class Shell:
    """The state of a shell. ``file``: where results go, None: to the screen.

    ``namespace``: that of ``USE``, if it is Pulsar's.
    """

    def __init__(self, session: Session, screen: Screen, file: ResultFile | None = None) -> None:
        self.session = session
        self.screen = screen
        self.file = file
        self.namespace: str | None = None

    def run(self, text: str) -> None:
        """Run one statement and show its result. Raises PulsarLakeError, KeyboardInterrupt."""
        if self.session.lost():
            say("Spark's JVM had ended: another one starts, without views and settings", err=True)
            self.namespace = None
        begun, file = time.monotonic(), self.file
        result = run_statement(self.session, text, file or self.screen)
        ended = time.monotonic()
        came = "done"
        if isinstance(result, Taken):
            more = "; \\rows all or \\o FILE for all of them" if result.cut else ""
            came, ended = f"{result}{more}", result.at  # without the time in a pager
        elif result is not None:
            came = f"{rows_text(result)} to {file.path if file else ''}"
        took = f", {ended - begun:.2f} s" if self.screen.timing else ""
        say(f"({came}{took})\n")
        if without_space(tokens(text))[0].text.upper() in ("USE", "SET"):
            self.namespace = in_thread(self._namespace).result()

    def _namespace(self) -> str | None:
        catalog = self.session.lake.spark.catalog
        if catalog.currentCatalog() != "pulsar":
            return None
        return catalog.currentDatabase().replace("`", "") or None
