"""Measure the peak of JVMs and memory while a command runs: `python -m tests.footprint make test`.

Every process that begins after this script is counted, because servers and daemons leave the
command's process tree. Run nothing else meanwhile. Linux only.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["main"]

_SECONDS = 0.5
"""Seconds between two samples."""


def main(command: list[str]) -> int:
    """Run the command, print the two peaks, and return the command's exit code."""
    known = set(_processes())
    jvms = memory = 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            new = _processes() - known
            jvms = max(jvms, sum(_text(pid, "comm") == "java\n" for pid in new))
            memory = max(memory, sum(map(_resident_kib, new)))
            time.sleep(_SECONDS)
    print(f"at most {jvms} JVMs and {memory / 2**20:.1f} GiB at once", file=sys.stderr)
    return process.returncode


def _processes() -> set[str]:
    return {path.name for path in Path("/proc").iterdir() if path.name.isdigit()}


def _resident_kib(pid: str) -> int:
    """Return the resident memory of a process, with its part of the pages that it shares."""
    lines = _text(pid, "smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _text(pid: str, name: str) -> str:
    """Return a file of a process, or nothing if the process has ended."""
    try:
        return Path("/proc", pid, name).read_text(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    if not sys.argv[1:] or shutil.which(sys.argv[1]) is None:
        sys.exit("usage: python -m tests.footprint COMMAND [ARGUMENT ...]; COMMAND has to exist")
    sys.exit(main(sys.argv[1:]))
