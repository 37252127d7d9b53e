"""CPU seconds and memory of our processes, out of /proc (Linux)."""

import os
from collections.abc import Iterator
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(*roots: int) -> float:
    """User and system time of this process and of the trees below `roots`, servers not counted.

    Children that ended and were waited for count with their parent.
    """
    own = os.times()
    below = [pid for root in roots for pid in (root, *descendants(root))]
    return own.user + own.system + process_seconds(*below)


def process_seconds(*pids: int | None) -> float:
    """User and system time of these processes and of their children that ended; none for None."""
    ticks = sum(int(field) for pid in pids if pid is not None for field in _stat(pid)[11:15])
    return ticks / _TICK


def peak_bytes(pid: int) -> int:
    """The largest resident memory that the process has had; 0 once it is gone.

    ``getrusage`` gives at least what its parent had when it started it.
    """
    return _bytes_of(pid, "status", "VmHWM:")


def shared_bytes(pid: int) -> int:
    """Return the resident memory of a process, with its part of shared pages; 0 once it is gone."""
    return _bytes_of(pid, "smaps_rollup", "Pss:")


def command_name(pid: int) -> str:
    """Return the name of the process's program, or an empty text once the process is gone."""
    return _read(pid, "comm").rstrip("\n")


def process_ids() -> Iterator[int]:
    """Return the ids of all processes of the machine."""
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def descendants(root: int) -> list[int]:
    """Ids of all processes below `root`."""
    parents = {pid: int(fields[1]) for pid in process_ids() if (fields := _stat(pid))}
    found = [root]
    for one in found:
        found += [pid for pid, parent in parents.items() if parent == one]
    return found[1:]


def _bytes_of(pid: int, name: str, field: str) -> int:
    """Return a field in kB of /proc/PID/name; 0 once the process is gone."""
    for line in _read(pid, name).splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the command's name; zeros once it is gone."""
    text = _read(pid, "stat")
    return text.rpartition(")")[2].split() if text else ["0"] * 20


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""  # it has ended
