"""A daemon in this process: its scheduler in a thread, its log in a file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.world import World
from offloader.config import Config
from offloader.model import Clocks
from offloader.service.console import Console
from offloader.service.daemon import Daemon
from offloader.service.signals import Stop
from reader.clients import Clients

__all__ = ["offloader", "running"]


@contextmanager
def offloader(
    world: World,
    config: Config,
    names: Sequence[str],
    *,
    now: bool = False,
    clock: Callable[[], float] = time.time,
) -> Iterator[Daemon]:
    """A daemon that is not running yet; its jobs run in the world's Spark."""
    with (
        Clients(config) as clients,
        Path(world.directory, "offloader.log").open("a") as log,
        Console(log) as console,
    ):
        yield Daemon(
            config,
            clients,
            names,
            console=console,
            stop=Stop(),
            context=lambda: world.bare.spark.sparkContext,
            now=now,
            clocks=Clocks(ms=lambda: int(clock() * 1000)),
        )


@contextmanager
def running(daemon: Daemon) -> Iterator[None]:
    """Its scheduler runs meanwhile."""
    over = threading.Event()
    thread = threading.Thread(target=daemon.scheduler.run, args=(over.is_set,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
