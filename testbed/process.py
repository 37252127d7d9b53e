"""One child process: logs to a file, dies with its parent, is signalled by its own pid only."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

# Sets PR_SET_PDEATHSIG (1) to SIGKILL (9), then becomes the real command. A wrapper and not a
# preexec_fn: forking a process full of threads to run Python code in it can deadlock.
_WRAPPER = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)\n"
    "if os.getppid() != int(sys.argv[1]): sys.exit('the parent died first')\n"
    "os.execvp(sys.argv[2], sys.argv[2:])\n"
)

# Linux sends the death signal when the *thread* that forked ends, so one thread that lives as
# long as the interpreter forks them all; callers may then be short-lived threads.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")

_PORTS = range(12_000, 32_000)
_BLOCK = 50
_choosing = threading.Lock()
_unused: list[int] = []
_marks: list[socket.socket] = []
"""Each says to other processes, as long as this one lives, that a block of ports is taken."""


class ClusterError(RuntimeError):
    """A server died or did not become ready; the message ends with the tail of its log."""


def free_ports(count: int) -> list[int]:
    """Distinct free loopback ports, below the range that the kernel gives to outgoing
    connections: a killed bookie must find its port still free when it comes back.

    No other process gets them from here, nor this one again: they are bound some time later.
    """
    chosen: dict[int, socket.socket] = {}
    try:
        while len(chosen) < count:
            port = _next_port()
            probe = socket.socket()
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                probe.close()
            else:
                chosen[port] = probe
        return list(chosen)
    finally:
        for probe in chosen.values():
            probe.close()


def _next_port() -> int:
    with _choosing:
        while not _unused:
            first = random.randrange(_PORTS.start, _PORTS.stop, _BLOCK)
            mark = socket.socket(socket.AF_UNIX)
            try:
                mark.bind(f"\0pulsar-lake ports {first}")  # a name, not a file: it ends with us
            except OSError:
                mark.close()
            else:
                _marks.append(mark)
                _unused.extend(range(first, first + _BLOCK))
        return _unused.pop()


def port_answers(port: int) -> bool:
    """Whether something accepts connections on this loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_for(
    what: str,
    ready: Callable[[], bool],
    processes: Sequence[Process] = (),
    timeout: float = 120,
    interval: float = 0.1,
) -> None:
    """Poll until `ready()`; raises `ClusterError` at once if one of `processes` has died."""
    deadline = time.monotonic() + timeout
    while not ready():
        for process in processes:
            if not process.alive:
                raise ClusterError(f"{process.name} died while waiting for {what}{process.tail()}")
        if time.monotonic() > deadline:
            tails = "".join(process.tail() for process in processes)
            raise ClusterError(f"timed out after {timeout:.0f} s waiting for {what}{tails}")
        time.sleep(interval)


class Server:
    """What runs between `start` and `stop`; a context manager."""

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class Process:
    """A server as a child process in a session of its own (so Ctrl-C reaches only us)."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self.env = dict(env or {})
        self._child: subprocess.Popen[bytes] | None = None
        self._paused = False

    def spawn(self) -> None:
        """Start it (again); does not wait until it is ready."""
        if self.alive:
            raise ClusterError(f"{self.name} is running already")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        wrapped = [sys.executable, "-I", "-S", "-c", _WRAPPER, str(os.getpid()), *self.command]

        def fork() -> subprocess.Popen[bytes]:
            with self.log.open("ab") as log:
                return subprocess.Popen(
                    wrapped,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={**os.environ, **self.env},
                )

        self._child = _spawner.submit(fork).result()
        self._paused = False

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None and self.alive else None

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def wait(self, timeout: float) -> int:
        """Wait until it ends by itself; its exit code."""
        assert self._child is not None
        return self._child.wait(timeout)

    def kill(self) -> None:
        """SIGKILL, as a crash does it; harmless if it is not running."""
        if self._child is not None:
            self._child.kill()  # Popen checks that the pid is still ours
            self._child.wait()

    def terminate(self, timeout: float = 20) -> None:
        """SIGTERM, so that it can shut down in order; SIGKILL if that takes too long."""
        if self._child is None:
            return
        self.resume()
        self._child.terminate()
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing answers."""
        if self._child is not None and self.alive:
            self._child.send_signal(signal.SIGSTOP)
            self._paused = True

    def resume(self) -> None:
        """SIGCONT."""
        if self._child is not None and self._paused and self.alive:
            self._child.send_signal(signal.SIGCONT)
        self._paused = False

    def tail(self, lines: int = 25) -> str:
        """The end of its log, headed by its name, to be added to an error."""
        text = self.log.read_bytes()[-20_000:].decode(errors="replace") if self.log.exists() else ""
        shown = "\n".join(text.splitlines()[-lines:])
        return f"\n--- {self.name}: end of {self.log} ---\n{shown}"


class ProcessServer(Server):
    """Processes over a folder of their own; everything is gone after.

    `kind`: for names of folders and in errors. `seconds`: how long it may take to be ready.
    """

    kind = "server"
    seconds = 240.0

    def start(self) -> None:
        self._processes: list[Process] = []
        self._directory = Path(tempfile.mkdtemp(prefix=f"pulsar-lake-{self.kind}-"))
        try:
            self._processes = self._prepared()
            for one in self._processes:
                one.spawn()
            wait_for(self.kind, self._answers, self._processes, timeout=self.seconds)
            self._fill()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for one in self._processes:
            one.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _prepared(self) -> list[Process]:
        """Its processes, not spawned; `_directory` is there."""
        raise NotImplementedError

    def _answers(self) -> bool:
        raise NotImplementedError

    def _fill(self) -> None:
        """What is made once it answers, e.g. a bucket."""
