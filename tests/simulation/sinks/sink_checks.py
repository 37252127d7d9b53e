"""What is in the topic has to be what was committed: each row once, in order, or an error.

The log is the witness: all entries that producers of writes ever stored, deleted or not.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from testbed.simulation import ManagedLedger
from tests.simulation.sinks.sink_world import Attempt, SinkWorld, Version
from tests.simulation.world import World

_HOUR_MS = 3_600_000
_PRODUCERS = "pulsar-lake-"
_Row = tuple[int, int]
"""(execution of a task, number of the row in it)."""


def check_rows(world: World, sinks: SinkWorld) -> None:
    """Raises ViolationError for rows that are lost, doubled, out of order, or nobody's."""
    places = {
        run.number: (app, number, attempt, task)
        for (app, number), version in sinks.versions.items()
        for attempt, given in enumerate(version.attempts)
        for task, run in enumerate(given.runs)
    }
    counts: Counter[_Row] = Counter()
    there: dict[tuple[str, int], set[int]] = defaultdict(set)
    for ml in sinks.lives():
        here: dict[tuple[str, int], set[int]] = defaultdict(set)
        last: dict[str, tuple[int, int, int]] = {}
        for row in _stored(ml):
            run, number = row
            if run not in places:
                world.require(run in sinks.direct, f"a row that Spark has not committed: {row}")
                continue
            app, of, attempt, task = places[run]
            counts[row] += 1
            found = sinks.versions[app, of]
            if found.attempts[attempt].exact:
                there[app, of].add(attempt)
                here[app, of].add(attempt)
            if found.loose or _is_doubtful(sinks, found) or _is_decided_twice(sinks, app, found):
                continue
            at = of, task, number
            world.require(counts[row] == 1, f"row {row} of {app} {of} is there twice")
            world.require(
                last.get(app, (-1, -1, -1)) < at, f"row {at} of {app} comes behind {last.get(app)}"
            )
            last[app] = at
        for (app, number), attempts in here.items():
            _require_one(world, sinks, app, number, attempts)
    for (app, number), version in sinks.versions.items():
        # Once a manifest is lost, a partition of which it had no rows takes those of another
        # attempt, before the next partition refuses them.
        if not sinks.happened(version, "restored"):
            _require_one(world, sinks, app, number, there[app, number])
        if version.done:
            _check_done(world, sinks, f"{app} {number}", version, there[app, number], counts)


def _require_one(world: World, sinks: SinkWorld, app: str, number: int, attempts: set[int]) -> None:
    several = len(attempts) > 1
    if several and not _is_decided_twice(sinks, app, sinks.versions[app, number]):
        world.require(False, f"rows of several attempts of {app} {number} are there")


def _check_done(
    world: World,
    sinks: SinkWorld,
    what: str,
    version: Version,
    there: set[int],
    counts: Counter[_Row],
) -> None:
    if version.loose:
        whole = any(_missing(one, counts) == 0 for one in version.attempts)
        world.require(whole, f"rows of {what} are missing, which was sent at least once")
        return
    has_none = any(not any(run.keys for run in one.runs) for one in version.attempts)
    if not there:
        world.require(has_none, f"all rows of {what} are missing")
    elif not (has_none and sinks.happened(version, "restored")):
        # Without rows no broker is asked: nobody notices that a manifest is lost.
        missing = min(_missing(version.attempts[one], counts) for one in there)
        world.require(missing == 0, f"{missing} rows of {what} are missing")


def _missing(attempt: Attempt, counts: Counter[_Row]) -> int:
    rows = [(run.number, row) for run in attempt.runs for row in range(len(run.keys))]
    return sum(counts[row] == 0 for row in rows)


def _is_doubtful(sinks: SinkWorld, version: Version) -> bool:
    """Whether documented limits let rows be there twice."""
    return any(sinks.happened(version, what) for what in ("undeduplicated", "set back"))


def _is_decided_twice(sinks: SinkWorld, app: str, version: Version) -> bool:
    """Whether a lost manifest lets other rows of a version be sent: no broker knows its name."""
    is_unknown = sinks.happened(version, "forgotten") or app in sinks.unknown
    return sinks.happened(version, "restored") and is_unknown


def _stored(ml: ManagedLedger) -> Iterator[_Row]:
    """Rows of writes that were ever stored in a partition, in order."""
    for _, _, entry in ml.entries():
        if entry.producer.startswith(_PRODUCERS):
            for value in entry.values:
                assert value is not None
                run, _, row = value.partition(b".")
                yield int(run), int(row)


def require_reason(
    world: World, sinks: SinkWorld, error: Exception, version: Version | None, troubled: bool
) -> None:
    """Raises ViolationError for an error without a reason. ``troubled``: the step met trouble."""
    if isinstance(error, UnavailableError):
        is_one = troubled or _is_hidden(world)
    elif isinstance(error, ConfigurationError):
        is_one = any(sinks.producers.is_exclusive(ml) for ml in world.parts)
        is_one = is_one or not sinks.producers.may_enable
        # The checkpoint knows a version as sent, of which the copy has the manifest of before.
        is_one = is_one or sinks.restored > 0
    else:
        is_one = type(error) is PulsarLakeError and version is not None
        is_one = is_one and version is not None and _may_fail(world, sinks, version)
    world.require(is_one, f"a write fails without a reason: {type(error).__name__}: {error}")


def _may_fail(world: World, sinks: SinkWorld, version: Version) -> bool:
    """Whether nobody can tell what was sent, or other attempts send the same."""
    others = len(version.drivers) > 1 or version.repeated
    return others or may_never_end(world, sinks, version)


def may_never_end(world: World, sinks: SinkWorld, version: Version) -> bool:
    """Whether a version cannot be sent exactly once any more, by what docs/writing.md says."""
    if sinks.happened(version, "refused") or sinks.happened(version, "undeduplicated"):
        return True
    if sinks.restored:
        return True
    age = world.clock.now_ms - version.since_ms
    old = age >= _HOUR_MS or world.drivers_clock.farthest_ms or world.storages_clock.farthest_ms
    return bool(old) and any(_is_deleted(ml, version) for ml in sinks.lives())


def _is_deleted(ml: ManagedLedger, version: Version) -> bool:
    """Whether messages behind the version's beginning may have been deleted."""
    end = version.ends.get(ml.name)
    if end is None:
        return False
    listed = [one.id for one in ml.listing]
    return not listed or min(listed) > end


def _is_hidden(world: World) -> bool:
    """Whether a transaction hides the end of a partition, or its broker looks for those."""
    now = world.clock.now_ms
    return any(ml.open or ml.recovering_ms > now for ml in world.parts)
