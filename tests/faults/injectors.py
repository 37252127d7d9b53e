"""Fault injectors: each injects one fault at a time, and undoes it again.

An injector draws from random numbers of its own, so a seed repeats its faults whatever the others
do; when they hit is not repeated to the message.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.cluster import ProcessCluster
from testbed.faults import FaultyStore, Rule
from testbed.process import Process
from testbed.proxy import TcpProxy
from tests.faults.daemon import Daemon
from tests.faults.stream_driver import StreamDriver
from tests.support.stream_program import PLANNER, TASKS

Pause = Callable[[float], object]
"""Waits so many seconds, less if the run ends."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault; ``inject`` undoes it before it returns; False: nothing was hit."""

    name: str
    weight: int
    inject: Callable[[random.Random, Pause], bool | None]


class Injector:
    """Injects faults, one after the other with pauses between, until ``stop``.

    ``injected`` counts those that hit something.
    """

    def __init__(
        self, name: str, seed: int, faults: Sequence[Fault], rest: tuple[float, float]
    ) -> None:
        self._random = random.Random(f"{seed} {name}")
        self._faults = faults
        self._rest = rest
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"injector {name}")
        self.injected: Counter[str] = Counter()
        self.error: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Wait until the last fault is undone. Raises what went wrong in the injector itself."""
        self._over.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        weights = [fault.weight for fault in self._faults]
        try:
            while not self._over.wait(self._random.uniform(*self._rest)):
                [fault] = self._random.choices(self._faults, weights)
                if fault.inject(self._random, self._over.wait) is not False:
                    self.injected[fault.name] += 1
        except BaseException as error:  # noqa: BLE001 - ``stop`` raises it
            self.error = error


# --- servers ---


def servers(
    cluster: ProcessCluster, unload: Callable[[random.Random], None], daemon: Daemon
) -> list[Fault]:
    """Bookies, the broker and the offloader are killed or paused; topics are unloaded."""

    def kill_bookie(chance: random.Random, pause: Pause) -> None:
        bookie = chance.choice(cluster.bookies)
        bookie.kill()
        pause(chance.uniform(0.5, 8))
        bookie.start()

    def pause_bookie(chance: random.Random, pause: Pause) -> None:
        with _paused(chance.choice(cluster.bookies)):
            pause(chance.uniform(0.5, 6))

    def silence_bookie(chance: random.Random, pause: Pause) -> None:
        # Longer than any timeout of a read: connections are kept, and nothing is answered.
        with _paused(chance.choice(cluster.bookies)):
            pause(chance.uniform(12, 30))

    def kill_broker(chance: random.Random, pause: Pause) -> None:
        cluster.kill_broker()
        pause(chance.uniform(0.1, 3))
        cluster.start_broker()

    def restart_broker(chance: random.Random, pause: Pause) -> None:
        cluster.restart_broker()

    def pause_broker(chance: random.Random, pause: Pause) -> None:
        with _paused(cluster.broker):
            pause(chance.uniform(0.5, 6))

    def kill_offloader(chance: random.Random, pause: Pause) -> bool:
        return daemon.kill(lambda: pause(chance.uniform(0.1, 2)))

    return [
        Fault("bookie killed", 4, kill_bookie),
        Fault("bookie stopped for a while", 3, pause_bookie),
        Fault("bookie silent beyond all timeouts", 1, silence_bookie),
        Fault("broker killed", 2, kill_broker),
        Fault("broker restarted", 1, restart_broker),
        Fault("broker stopped for a while", 2, pause_broker),
        Fault("offloader killed", 4, kill_offloader),
        Fault("topic unloaded", 3, lambda chance, _: unload(chance)),
    ]


def clocks(daemon: Daemon) -> list[Fault]:
    """The offloader's clock is set, and set right after a while, or not before the next step."""

    def step(chance: random.Random, pause: Pause) -> None:
        hours = chance.choice((8.0, -8.0, 1 / 60, -1 / 60))
        daemon.step_clock(hours * 3600)
        pause(chance.uniform(5, 30))
        daemon.step_clock(0)

    return [Fault("offloader's clock set", 1, step)]


_MOST_SECONDS = 90
"""How long a kill waits for the streaming program's first micro-batch."""


def streaming(driver: StreamDriver) -> list[Fault]:
    """The program with the streaming queries is killed, or only what works for it."""

    def kill_program(chance: random.Random, pause: Pause) -> None:
        # Mostly once it has done something: a busy machine takes half a minute to start it.
        if chance.random() < 0.75:
            for _ in range(_MOST_SECONDS):
                if driver.has_done_a_batch() or pause(1):
                    break
        driver.kill(lambda: pause(chance.uniform(0.1, 5)))

    def kill_workers(chance: random.Random, pause: Pause) -> bool:
        return driver.kill_some(TASKS)

    def kill_planner(chance: random.Random, pause: Pause) -> bool:
        return driver.kill_some(PLANNER)

    return [
        Fault("stream program killed", 4, kill_program),
        Fault("its Python workers killed", 2, kill_workers),
        Fault("its planner killed", 2, kill_planner),
    ]


@contextmanager
def _paused(process: Process) -> Iterator[None]:
    process.pause()
    try:
        yield
    finally:
        process.resume()


# --- the network ---


def network(bookies: Sequence[TcpProxy], admin: TcpProxy) -> list[Fault]:
    """Connections to bookies and to the admin REST stall, are cut off, refused or garbled."""

    def stall(chance: random.Random, pause: Pause) -> None:
        proxy = chance.choice([*bookies, admin])
        proxy.stall()
        pause(chance.uniform(0.2, 5))
        proxy.resume()

    def stop(chance: random.Random, pause: Pause) -> None:
        proxy = chance.choice([*bookies, admin])
        proxy.stop()
        pause(chance.uniform(0.2, 4))
        proxy.resume()

    def cut(chance: random.Random, _: Pause) -> None:
        chance.choice([*bookies, admin]).cut()

    def cut_in_the_middle(chance: random.Random, pause: Pause) -> None:
        proxy = chance.choice([*bookies, admin])
        proxy.drop_after(chance.randrange(1, 20_000))
        pause(3)
        proxy.resume()

    def garble(chance: random.Random, pause: Pause) -> None:
        # Only bookies' bytes: they have digests, the admin REST has nothing of that kind.
        proxy = chance.choice(bookies)

        def change(chunk: bytes) -> bytes:
            at = chance.randrange(len(chunk))
            return chunk[:at] + bytes([chunk[at] ^ 1 << chance.randrange(8)]) + chunk[at + 1 :]

        proxy.corrupt(change)
        pause(chance.uniform(0.2, 3))
        proxy.resume()

    return [
        Fault("connections stalled", 3, stall),
        Fault("connections refused", 2, stop),
        Fault("connections cut", 3, cut),
        Fault("a connection cut in an answer", 3, cut_in_the_middle),
        Fault("bookie's bytes garbled", 3, garble),
    ]


# --- object storage ---


def store(faulty: FaultyStore) -> list[Fault]:
    """The store refuses, applies without saying so, is slow, truncates or conflicts, for a while
    or once."""

    def burst(add: Callable[..., Rule], *more: float) -> Callable[[random.Random, Pause], bool]:
        def inject(chance: random.Random, pause: Pause) -> bool:
            share = chance.choice([0.1, 0.5, 1.0])
            # A generator of its own: how many requests come is not the injector's to repeat.
            dice = random.Random(chance.random())
            rule = add(lambda method, path: dice.random() < share, *more, times=1 << 30)
            pause(chance.uniform(0.2, 3))
            faulty.heal()
            return rule.hits > 0

        return inject

    def on_commit(add: Callable[..., Rule]) -> Callable[[random.Random, Pause], bool]:
        def inject(chance: random.Random, pause: Pause) -> bool:
            rule = add(lambda method, path: method == "PUT" and "/_delta_log/" in path, times=1)
            for _ in range(20):
                if rule.hits:
                    break
                pause(0.5)
            faulty.heal()
            return rule.hits > 0

        return inject

    return [
        Fault("store: 503", 3, burst(faulty.refuse)),
        Fault("store: applied, then 500", 2, burst(faulty.apply_then_500)),
        Fault("store: applied, no answer", 2, burst(faulty.apply_then_drop)),
        Fault("store: slow", 2, burst(faulty.slow, 0.3)),
        Fault("store: truncated", 3, burst(faulty.truncate)),
        Fault("commit: applied, then 500", 3, on_commit(faulty.apply_then_500)),
        Fault("commit: applied, no answer", 3, on_commit(faulty.apply_then_drop)),
        Fault("commit: conflict", 2, on_commit(faulty.conflict)),
    ]
