"""A copy of the repository's tree, in which one mutation at a time is put in and tests are run."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from tests.mutations.mutation import Mutation, MutationError, mutated

_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", ".*_cache", "build", "dist", "demo-out", "results", "target"
)
_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2
_FOUND = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TestRun:
    """What pytest said: the first test that failed, or None; and how long it took."""

    __test__ = False

    found_by: str | None
    seconds: float


class MutatedTree:
    """The copy. ``root`` is the tree that is copied; it is never changed.

    nice: how much less urgent the tests are than other processes.
    """

    def __init__(self, root: Path, copy: Path, *, nice: int = 0) -> None:
        self._root = copy / "tree"
        self._nice = nice
        shutil.copytree(root, self._root, ignore=_LEFT_OUT, symlinks=True)
        # Some tests start programs of the environment by its path in the repository.
        (self._root / ".venv").symlink_to(sys.prefix)

    @contextmanager
    def with_mutation(self, mutation: Mutation) -> Iterator[None]:
        """Put the mutation in, and take it out at the end. Raises MutationError."""
        file = self._root / mutation.file
        text = mutated(mutation, self._root)
        before = file.read_text()
        _write(file, text)
        try:
            yield
        finally:
            _write(file, before)

    def run(self, tests: Sequence[str], seconds: float, *, processes: int = 1) -> TestRun:
        """Run tests until the first failure. ``seconds``: a longer run is a failure as well.

        Raises MutationError if pytest ran none of the tests.
        """
        # A failing example of another mutation is not tried first: chance is what it was.
        shutil.rmtree(self._root / ".hypothesis", ignore_errors=True)
        command = [
            *(["nice", "-n", str(self._nice)] if self._nice else []),
            *(sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=no", "--no-header"),
            *(
                "--hypothesis-profile=check",
                "-m",
                "not servers and not nightly",
                "-p",
                "no:cacheprovider",
            ),
            # What they compare the catalogue with is mutated.
            *("--ignore", "tests/unit/mutations"),
            *_side_by_side(processes),
            *tests,
        ]
        environment = {**os.environ, "PYTHONPATH": str(self._root), "COLUMNS": "1000"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # it is a copy, for many runs
        began = time.monotonic()
        with subprocess.Popen(
            command,
            cwd=self._root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                return TestRun(f"no end after {seconds:.0f} s", time.monotonic() - began)
        found = finding_test(process.returncode, output)
        return TestRun(found, time.monotonic() - began)


def finding_test(exit_code: int, output: str) -> str | None:
    """Return the first test that failed, by what pytest printed; None if all passed.

    Raises MutationError if pytest ran none of the tests.
    """
    if exit_code == _PASSED:
        return None
    if exit_code < 0:  # a kernel that reads outside of its memory
        return f"pytest died of signal {-exit_code}"
    found = _FOUND.search(output)
    if exit_code in (_FAILED, _INTERRUPTED) and found is not None:
        return found[1]
    raise MutationError(f"pytest ended with exit code {exit_code}: {output.strip()[-2000:]}")


def _side_by_side(processes: int) -> list[str]:
    if processes == 1:
        return []
    return ["-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder", "--one-spark"]


def _write(file: Path, text: str) -> None:
    file.write_text(text)
    # Python compares a compiled file by size and whole seconds, which may be the same.
    Path(cache_from_source(str(file))).unlink(missing_ok=True)
