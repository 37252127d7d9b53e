"""Actions of the product in a world, each with what is checked of it."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from testbed.simulation import HOLD, CrashError, ManagedLedger, RowKind, Trouble
from tests.simulation.product.queries import PinnedQuery, count, pin
from tests.simulation.world import TOPIC, Pinned, World, tries

_MS = timedelta(milliseconds=1)
_LONGEST_PAUSE = timedelta(minutes=15)
_PACE = timedelta(minutes=3)
"""Between two rounds of ``live``."""


def turn(world: World, number: int, *, maintain: bool = False) -> None:
    """A turn without trouble: an error needs an excuse."""
    world.effects.reset()
    excuses = world.excuses()
    requests, world.counts["entries"] = world.rest.requests, 0
    error = work(world, number, maintain)
    met = _met(world)
    if error is not None and not (excuses or met or _skewed(world, maintain)):
        raise world.violation(f"a turn fails without a reason: {error}") from error
    listed = sum(len(ml.listing) for ml in world.parts) + len(world.parts)
    world.require(
        "recovering" in excuses
        or met
        or world.rest.requests - requests <= 60 + 30 * len(world.parts) + 2 * listed,
        f"a turn makes {world.rest.requests - requests} requests",
    )
    entries = sum(len(one.entries) for ml in world.parts for one in ml.listing)
    world.require(
        world.counts["entries"] <= 12 * entries + 50,
        f"a turn reads {world.counts['entries']} entries of {entries}",
    )


def _skewed(world: World, maintain: bool) -> bool:
    """Maintenance refuses to run beside a storage whose clock differs."""
    return maintain and any(one.ahead_ms for one in (*world.host_clocks, world.storages_clock))


def _met(world: World) -> bool:
    """Whether trouble came in this step: what was planned, or a server that was away."""
    return world.effects.met or bool(world.outages.met)


def _unanswered(world: World) -> bool:
    """Whether a query met a server that it cannot do without. Brokers read for bookies."""
    return any(not one.startswith("bookie") for one in world.outages.met)


def work(world: World, number: int, maintain: bool) -> Exception | None:
    """Let an offloader have a turn, or maintain the table. Return the product's error."""
    with world.as_host(number) as host:
        if not maintain:
            there = world.to_offload()
            error = tries(lambda: host.turn(TOPIC))
            if error is None:
                host.seen |= there
            return error
        if world.settings.retention_hours:
            before = host.clock_ms() - world.settings.retention_hours * 3_600_000
            world.expired_before = max(before, world.expired_before or 0)
        for one in world.pinned:
            one.excused.add("maintenance")
        return tries(lambda: host.maintain(TOPIC, vacuum=True))


def trouble(world: World, number: int, kind: Trouble, at: int, *, maintain: bool = False) -> None:
    """A turn in which the process dies, an effect fails, or the other process has a turn."""
    excuses = world.excuses()

    def meet() -> None:
        work(world, 1 - number, maintain)

    world.effects.plan(kind, at, meet)
    error: Exception | None = None
    with suppress(CrashError):
        error = work(world, number, maintain)
    # Another offloader's turn is no trouble: both go on.
    met = bool(world.outages.met) or (world.effects.met and kind != "meet")
    world.effects.reset()
    if error is not None and not (excuses or met or _skewed(world, maintain)):
        raise world.violation(f"a turn fails without a reason: {error}") from error


def turn_while(world: World, number: int, at: int, happens: Callable[[], None]) -> None:
    """A turn, in the middle of which something ``happens`` that is no trouble."""
    excuses = world.excuses()
    world.effects.plan("meet", at, happens)
    error = work(world, number, False)
    away = bool(world.outages.met)
    world.effects.reset()
    if error is not None and not (excuses or away):
        raise world.violation(f"a turn fails without a reason: {error}") from error


def ask_while(world: World, at: int, happens: Callable[[], None]) -> None:
    """A query, in the middle of which something ``happens``: all rows of before, none but those
    of after."""
    excuses, losses, before = world.query_excuses(), world.has_losses(), world.expectation()
    clients, rows = world.lenient_clients(), []

    def run() -> None:
        nonlocal rows
        rows = pin(clients, TOPIC).rows(clients)

    world.effects.plan("meet", at, happens)
    error = tries(run)
    away = bool(world.outages.met)
    world.effects.reset()
    if error is None:
        found = Counter(rows)
        wrong = before.missing(found) or world.expectation().too_many(found)
        if wrong:
            raise world.violation(f"a query in the middle of changes gives other rows: {wrong}")
    elif not (excuses or losses or away):
        raise world.violation(f"a query fails without a reason: {error}") from error


def check_round(world: World, number: int) -> None:
    """A round of the scheduler: after it, each partition has had its hold."""
    world.effects.reset()
    excuses = world.excuses()
    with world.as_host(number) as host:
        failing = any(one.failures for one in host.queue)
        fresh = [ml for ml in world.parts if not ml.held]
        try:
            errors = host.round()
        except world.errors as failed:
            errors = [failed]
    for error in errors:
        if not isinstance(error, world.errors):
            raise error
        if not (excuses or world.outages.met):
            raise world.violation(f"a turn fails without a reason: {error}") from error
    if errors or failing or excuses or world.outages.met:
        return
    # A topic that was made again looks like the old one until its holds are seen to be missing.
    added = [ml for ml in fresh if not any(one.index == ml.index for one in world.topic.gone)]
    world.require(all(ml.held for ml in added), f"no hold after a round: {added}")


def ask(world: World, style: int) -> None:
    """A query now: the list, or an error that it may be."""
    world.effects.reset()
    excuses = world.query_excuses()
    losses = world.has_losses()
    tiers = ("bookkeeper", "broker", None, None)[style % 4] if style % 3 == 0 else None
    published = world.clock.now_ms * 1000 - 90 * 60 * 1_000_000 if style % 5 == 4 else None
    must = world.must_refuse()
    expected = world.expectation()

    def query(lenient: bool) -> Exception | None:
        config = world.lenient if lenient else world.config
        clients = world.new_clients(config)
        rows = []

        def run() -> None:
            nonlocal rows
            found: PinnedQuery = pin(clients, TOPIC, tiers=tiers, published_from=published)
            rows = found.rows(clients)

        error = tries(run)
        if error is None:
            if must and not lenient:
                raise world.violation(f"a query says nothing of a loss: {must}")
            if world.hidden and not world.everything_listed():
                world.require(not world.claimed(), "a query does without the table")
                return None  # nothing says that there is one
            shown = expected if tiers is None and not world.hidden else expected.without_table()
            wrong = shown.since(published).difference(rows)
            if wrong:
                raise world.violation(f"a query gives other rows: {wrong}")
        return error

    error = query(False)
    if error is not None and losses and not excuses:
        error = query(True)
    if error is None or excuses or _unanswered(world):
        return
    if tiers is not None and (world.outages.met or not world.everything_listed()):
        return
    raise world.violation(f"a query fails without a reason: {error}") from error


def stumble(world: World, at: int) -> None:
    """A query in which one request, read or portion of rows fails: the list, or an error."""
    excuses, losses, expected = world.query_excuses(), world.has_losses(), world.expectation()
    clients, rows = world.lenient_clients(), []

    def run() -> None:
        nonlocal rows
        rows = pin(clients, TOPIC).rows(clients)

    world.effects.plan("fail", at)
    error = tries(run)
    met = _met(world)
    world.effects.reset()
    if error is None:
        wrong = expected.difference(rows)
        if wrong and not world.hidden:
            raise world.violation(f"a query in trouble gives other rows: {wrong}")
    elif not (excuses or losses or met):
        raise world.violation(f"a query fails without a reason: {error}") from error


def ask_count(world: World) -> None:
    """``count(*)``."""
    world.effects.reset()
    excuses, expected, found = world.query_excuses(), world.expectation(), 0

    def run() -> None:
        nonlocal found
        found = count(world.lenient_clients(), TOPIC)

    error = tries(run)
    if error is None:
        low, high = expected.count()
        world.require(low <= found <= high, f"count(*) is {found}, not {low} to {high}")
    elif not (excuses or _unanswered(world)):
        raise world.violation(f"a count fails without a reason: {error}") from error


def run_pinned(world: World, pinned: Pinned) -> None:
    """A query whose snapshot is old: exactly its rows, or an error that it may be."""
    world.effects.reset()
    excuses = world.query_excuses() | pinned.excused
    rows = []

    def run() -> None:
        nonlocal rows
        rows = pinned.query.rows(world.new_clients())

    error = tries(run)
    if error is None:
        wrong = pinned.expected.difference(rows)
        if wrong:
            raise world.violation(f"a pinned query gives other rows: {wrong}")
    elif not (excuses or _unanswered(world) or _may_be_given_up(world, error)):
        raise world.violation(f"a pinned query fails without a reason: {error}") from error


def _may_be_given_up(world: World, error: Exception) -> bool:
    """Return whether a ledger is gone whose chunks in the table may be those of the snapshot."""
    strays = any(row[2] is RowKind.STRAY for row in world.expectation().required)
    strays = strays or any(ml.broken for ml in world.parts)
    return strays and "with chunks that fit no message" in str(error)


def settle(world: World) -> None:
    """Without trouble, a few turns offload what is sealed, and the hold follows."""
    if world.foreign or world.old_copy or not world.parts:
        return
    world.mend()
    world.set_clocks_right()
    for _ in range(3):
        turn(world, 0)
        # A commit's time is its host's, and its grace is over by that.
        world.clock.advance((world.settings.grace_minutes + 31) * 60_000)
        if all(_is_settled(world, ml) for ml in world.parts):
            break
    for ml in world.parts:
        world.require(
            _is_settled(world, ml),
            f"after three turns the hold is at {ml.cursors.get(HOLD)}, not {world.needed_from(ml)}",
        )
    ask(world, 1)


def idle(world: World) -> None:
    """Nothing is written for hours: no message that was never completed holds any more."""
    if world.foreign or world.old_copy or not world.parts:
        return
    for ml in world.parts:
        world.state.unload(ml)
    settle(world)
    # Of a message that was written while a broker's clock was ahead.
    world.clock.advance(world.state.brokers_clock.farthest_ms)
    for _ in range(3):
        world.clock.advance((world.settings.chunk_minutes + 61) * 60_000)
        turn(world, 0)
    for ml in world.parts:
        if ml.open:
            continue
        held, last = ml.cursors.get(HOLD), ml.listing[-1].id
        world.require(
            held is not None and ml.normal(held) >= (last, 0),
            f"after hours without a message the hold is at {held}, not {last}",
        )
    ask(world, 1)


def live(world: World, number: int) -> None:
    """Servers answer again and clocks stay wrong: rounds offload what is due within a bound.

    The bound: the longest pause after failures, ``max_age``, grace, and some rounds. It is longer
    while the broker's clock is behind the times at which ledgers were closed.
    """
    if world.foreign or world.old_copy or not world.parts:
        return
    world.mend()
    closed = [one.closed_ms or 0 for ml in world.parts for one in ml.listing if not one.cold]
    world.clock.advance(max([0, *(at - world.state.brokers_clock.now_ms for at in closed)]))
    if world.excuses():  # a broker recovers its transactions
        world.clock.advance(60_000)
    config = world.config.offload
    bound = config.max_age + config.grace + _LONGEST_PAUSE + 6 * _PACE
    end = world.clock.now_ms + bound // _MS
    while not all(_is_settled(world, ml) for ml in world.parts):
        held = [ml.cursors.get(HOLD) for ml in world.parts]
        world.require(world.clock.now_ms < end, f"after {bound} of rounds the holds are at {held}")
        world.clock.advance(_PACE // _MS)
        check_round(world, number)


def _is_settled(world: World, ml: ManagedLedger) -> bool:
    """Whether all that is sealed, and not behind an open transaction, is offloaded and let go."""
    for ledger in ml.listing[:-1]:
        hidden = (ledger.id, len(ledger.entries) - 1) > ml.max_read
        if hidden or not ledger.entries:
            break
        if not ledger.cold:
            return False
    held = ml.cursors.get(HOLD)
    return held is not None and ml.normal(held) >= world.needed_from(ml)
