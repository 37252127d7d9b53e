"""The user's command that gives private keys by name (``encryption.command``).

Producers choose the names, so nothing that they choose may do more than be asked for:

- a name is asked for only if it fits ``KEY_NAME``, and goes in by standard input: it is never an
  option, a path out of a folder, or too long for a process;
- whatever else goes wrong concerns the rows of that name alone, and is kept for a minute;
- one process at a time, bounded in time and output; and for a topic no more than
  ``WASTED_SECONDS`` are spent on names that have no key of their own, which ten minutes give back:
  who makes up names costs their own topic its unknown keys, and no other. A key that is known by
  another name is none of its own: a command may have one for any name.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from reader.errors import UnavailableError

__all__ = ["KEY_NAME", "KeyCommand"]

KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
KEPT_SECONDS = 600.0  # tasks are short and many
KEPT_FAILURE_SECONDS = 60.0
WASTED_SECONDS = 120.0
LEAST_SECONDS = 0.1  # what an answer counts at least: so it bounds the processes as well
_MOST_BYTES = 64 << 10
_MOST_KEPT = 256  # keys
_MOST_WITHOUT = 4096  # names; a topic cannot have that many asked for while an answer is kept
_MOST_TOPICS = 4096
_MOST_LEFT = 16
_ENDS_IN = 1.0  # seconds, once it was killed

_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class _Answer:
    """``until``: seconds of the clock. ``failure``: why there is no answer; "" where there is.

    ``identity``: which key it is, however it is written.
    """

    until: float
    pem: bytes | None = None
    identity: object = None
    failure: str = ""


class KeyCommand:
    """Asks the command, once for all threads of the process.

    ``identity`` gives what is equal for the same key, and raises UnavailableError for output that
    is none. ``seconds``: until a process is ended; one that cannot be is left alone, and while
    there are too many of them none is started.
    """

    def __init__(
        self, command: Sequence[str], identity: Callable[[bytes], object], *, seconds: float = 30.0
    ) -> None:
        self._command = tuple(command)
        self._identity = identity
        self._seconds = seconds
        self._lock = threading.Lock()
        self._keys: OrderedDict[str, _Answer] = OrderedDict()
        self._without: OrderedDict[str, _Answer] = OrderedDict()
        # By topic: when all that it has wasted is given back. Wasting a second moves it by five.
        self._settled: OrderedDict[str, float] = OrderedDict()
        self._left: list[subprocess.Popen[bytes]] = []

    def key(self, name: str, topic: str, clock: Callable[[], float]) -> bytes | None:
        """The PEM of a name; None: there is none. ``clock``: seconds, always the same one.

        ``topic``: whose entries name it. Raises UnavailableError where the command is not asked,
        or does not answer.
        """
        if not KEY_NAME.fullmatch(name):
            raise UnavailableError("encryption.command is not asked for such a name")
        # First without the lock, which is held while a process runs: another topic's, it may be.
        answer = self._kept(name, clock)
        if answer is None:
            with self._lock:
                answer = self._kept(name, clock) or self._ask(name, topic, clock)
        if answer.failure:
            raise UnavailableError(answer.failure)
        return answer.pem

    def _kept(self, name: str, clock: Callable[[], float]) -> _Answer | None:
        answer = self._keys.get(name) or self._without.get(name)
        return answer if answer is not None and answer.until > clock() else None

    def _ask(self, name: str, topic: str, clock: Callable[[], float]) -> _Answer:
        began = clock()
        # A name that had a key is none that a producer has made up.
        had_key = name in self._keys
        settled = max(self._settled.get(topic, began), began)
        if settled - began >= KEPT_SECONDS and not had_key:
            return _Answer(
                began,
                failure="encryption.command was asked for too many unknown names of this topic",
            )
        try:
            pem = self._run(name)
            identity = self._identity(pem) if pem else None
        except UnavailableError as error:
            answer = _Answer(clock() + KEPT_FAILURE_SECONDS, failure=error.message)
        else:
            answer = _Answer(clock() + KEPT_SECONDS, pem or None, identity)
        if not had_key and (answer.pem is None or self._is_known(answer)):
            wasted = max(clock() - began, LEAST_SECONDS)
            settled += wasted * (KEPT_SECONDS / WASTED_SECONDS)
            _keep(self._settled, topic, settled, _MOST_TOPICS)
            _keep(self._without, name, answer, _MOST_WITHOUT)
        else:
            self._without.pop(name, None)
            _keep(self._keys, name, answer, _MOST_KEPT)
        return answer

    def _is_known(self, answer: _Answer) -> bool:
        return any(one.pem and one.identity == answer.identity for one in self._keys.values())

    def _run(self, name: str) -> bytes:
        self._left = [one for one in self._left if one.poll() is None]
        if len(self._left) >= _MOST_LEFT:
            raise UnavailableError("encryption.command does not end, nor can it be ended")
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # it may name secrets, and rows are for everybody
                start_new_session=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise UnavailableError("encryption.command cannot be started") from error
        try:
            return _output(process, name, time.monotonic() + self._seconds)
        except BaseException:
            if not _end(process):
                self._left.append(process)
            raise
        finally:
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(OSError):
                    pipe.close()


def _output(process: subprocess.Popen[bytes], name: str, deadline: float) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # it need not read the name
        process.stdin.write(name.encode() + b"\n")  # less than a pipe holds
        process.stdin.close()
    found = bytearray()
    ready = select.poll()
    ready.register(process.stdout, select.POLLIN | select.POLLHUP)
    while ready.poll(max(deadline - time.monotonic(), 0) * 1000):
        piece = os.read(process.stdout.fileno(), _MOST_BYTES)
        if not piece:
            break
        found += piece
        if len(found) > _MOST_BYTES:
            raise UnavailableError("encryption.command printed more than a key")
    else:
        raise UnavailableError("encryption.command did not answer in time")
    try:
        code = process.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired as error:
        raise UnavailableError("encryption.command did not answer in time") from error
    if code:
        raise UnavailableError(f"encryption.command ended with exit code {code}")
    return bytes(found)


def _end(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, and what it has started was told to."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except OSError:  # it runs as another user: sudo
        return process.poll() is not None
    try:
        process.wait(_ENDS_IN)
    except subprocess.TimeoutExpired:
        return False
    return True


def _keep(kept: OrderedDict[str, _Kept], name: str, value: _Kept, most: int) -> None:
    kept[name] = value
    kept.move_to_end(name)
    while len(kept) > most:
        kept.popitem(last=False)
