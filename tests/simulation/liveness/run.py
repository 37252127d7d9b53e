"""Many histories of the scheduler in several processes, and which topics waited for too long."""

import multiprocessing
import time
from collections.abc import Callable, Iterable

from tests.simulation.liveness.world import LateError, ScheduleWorld


def late_topics(
    seeds: Iterable[int],
    *,
    processes: int = 2,
    most: int = 5,
    log: Callable[[str], None] = lambda text: None,
) -> dict[int, str]:
    """Return the seeds of histories that fail, and how. End after ``most`` failures."""
    found: dict[int, str] = {}
    began, histories, longest = time.monotonic(), 0, dict[str, float]()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for seed, late, waits in pool.imap_unordered(_run, seeds):
            histories += 1
            longest |= {kind: max(longest.get(kind, 0.0), wait) for kind, wait in waits.items()}
            if late:
                found[seed] = late
                log(f"seed {seed}: {late}")
            if len(found) >= most:
                break
    waited = ", ".join(f"{kind} {wait:.0f} s" for kind, wait in sorted(longest.items()))
    log(
        f"{histories} histories in {time.monotonic() - began:.0f} s, {len(found)} failed; "
        f"longest waits: {waited}"
    )
    return found


def _run(seed: int) -> tuple[int, str, dict[str, float]]:
    world = ScheduleWorld(seed)
    late = ""
    try:
        world.run()
    except LateError as error:
        late = str(error)
    return seed, late, world.waits
