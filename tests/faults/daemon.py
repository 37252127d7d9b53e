"""The offloader of the run, as a process, and what it holds of memory and file handles."""

import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.usage import descendants
from tests.support.running import Run, Settings


@dataclass(frozen=True, slots=True)
class Held:
    """Of a process tree: MiB resident, and open files; ``at``: seconds, monotonic."""

    at: float
    memory: float
    files: int


def held_by(root: int, *, alone: bool = False) -> Held:
    """What the process and (unless ``alone``) those below it hold now."""
    memory = files = 0
    for pid in (root, *(() if alone else descendants(root))):
        try:
            text = Path(f"/proc/{pid}/statm").read_text()
            files += len(list(Path(f"/proc/{pid}/fd").iterdir()))
        except OSError:
            continue  # it has ended
        memory += int(text.split()[1]) * 4096
    return Held(time.monotonic(), memory / 2**20, files)


class Daemon:
    """``pulsar-lake offload``, started again after each death. Lives are numbered from 0.

    ``clock``: a file that says by how many seconds its clock is ahead.
    """

    def __init__(self, settings: Settings, clock: Path) -> None:
        self._settings = settings
        self._clock = clock
        clock.write_text("0")
        self._lock = threading.Lock()
        self.lives: list[Run] = []
        self.may_be_killed = True
        self.killed = 0

    def start(self) -> None:
        with self._lock:
            self._start()

    def _start(self) -> None:
        self.lives.append(Run(self._settings, "offload", clock=self._clock))

    def step_clock(self, ahead: float) -> None:
        """Set its clock to so many seconds ahead of the machine's, also for later lives."""
        self._clock.write_text(str(ahead))

    def kill(self, until: Callable[[], object]) -> bool:
        """SIGKILL, at whatever it does; started again after ``until``. Whether it was killed."""
        with self._lock:
            if not self.may_be_killed:
                return False
            self._check_alive()
            self.lives[-1].end()
            self.killed += 1
            until()
            self._start()
            return True

    def check_alive(self) -> None:
        """It must not have ended by itself."""
        with self._lock:
            self._check_alive()

    def _check_alive(self) -> None:
        life = self.lives[-1]
        assert life.running, f"the offloader has ended:\n{life.err[-3000:]}"

    def stop(self) -> None:
        """As an operator does it: it has to end well, and soon."""
        self.lives[-1].terminate()
        code = self.lives[-1].code(120)
        assert code == 0, f"exit code {code}:\n{self.lives[-1].err[-3000:]}"

    def end(self, log: Path) -> None:
        """However the run went; what it said is in ``log``."""
        self.lives[-1].end()
        log.write_text(self.log())

    def held(self) -> Held:
        return held_by(self.lives[-1].pid)

    def log(self) -> str:
        return "".join(life.err for life in self.lives)

    def errors(self) -> Counter[str]:
        """What it said it failed of, without names and numbers."""
        found: Counter[str] = Counter()
        for line in self.log().splitlines():
            if (at := line.find("error: ")) >= 0:
                text = re.sub(r"persistent://\S+|\S*/\S*|\d+", "…", line[at + 7 :])
                found[text[:90]] += 1
        return found

    def bugs(self) -> list[str]:
        """Log lines that are bugs: an exception of no class of ours, a traceback."""
        return [
            line
            for line in self.log().splitlines()
            if "Traceback" in line or re.search(r" error: .*: [A-Z]\w*(Error|Exception): ", line)
        ]


def flat(samples: list[Held]) -> tuple[float, float, float, float]:
    """Medians of the first and the last third: MiB, MiB, files, files."""
    third = max(1, len(samples) // 3)
    first, last = samples[:third], samples[-third:]
    return (
        statistics.median(one.memory for one in first),
        statistics.median(one.memory for one in last),
        statistics.median(one.files for one in first),
        statistics.median(one.files for one in last),
    )
