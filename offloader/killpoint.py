"""Tests only: die at a named step, as a machine would, to prove that any step may be the last.

``PULSAR_LAKE_TEST_KILL=`` one of ``Step`` makes the offloader's process kill itself (SIGKILL: no
handler, no clean-up) when it gets there. Not set: nothing happens.
"""

from __future__ import annotations

import os
import signal
from typing import Literal

__all__ = ["Step", "is_awaited", "reached"]

Step = Literal[
    "tasks-running",
    "files-written",
    "committed",
    "maintenance-written",
    "maintenance-committed",
    "iceberg-written",
    "iceberg-committed",
]

_VARIABLE = "PULSAR_LAKE_TEST_KILL"


def is_awaited(step: Step) -> bool:
    """Whether the process is to die at ``step``."""
    return os.environ.get(_VARIABLE) == step


def reached(step: Step) -> None:
    """The offloader has got to ``step``."""
    if is_awaited(step):
        os.kill(os.getpid(), signal.SIGKILL)
