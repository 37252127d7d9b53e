"""How many cores this process may use, as a JVM counts them for ``local[*]``."""

import math
import os
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> int:
    """Return the cores of this process: those of the machine, less by an affinity or a container.

    ``root``: where the system's files are. A container's limit is its cgroup's, of version 2 or 1.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:  # not Linux
        cores = os.cpu_count() or 1
    return max(1, min([cores, *_limits(root)]))


def _limits(root: Path) -> list[int]:
    mounted = root / "sys/fs/cgroup"
    named = [mounted / "cpu"]
    try:
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers:
                named.append(mounted / group.strip("/"))
            elif "cpu" in controllers.split(","):
                named.append(mounted / "cpu" / group.strip("/"))
    except (OSError, ValueError):
        pass  # not Linux
    folders = {
        one for path in named for one in (path, *path.parents) if mounted in (one, *one.parents)
    }
    found = []
    for folder in folders:
        try:
            if (folder / "cpu.max").exists():
                quota, period = (folder / "cpu.max").read_text().split()
            else:
                quota = (folder / "cpu.cfs_quota_us").read_text().strip()
                period = (folder / "cpu.cfs_period_us").read_text()
            if quota.isdigit():  # else "max", or -1
                found.append(math.ceil(int(quota) / int(period)))
        except (OSError, ValueError, ZeroDivisionError):
            continue  # it has none
    return found
