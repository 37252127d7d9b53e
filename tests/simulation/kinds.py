"""What each kind of step does to a world; ``a`` and ``b`` are numbers without a meaning of theirs.

A step that has nothing to do (no open transaction to commit) does nothing: any step can be left
out of a history, which is how a failing one is made shorter.
"""

from collections.abc import Callable

from testbed.simulation import HOLD, SERVERS, ManagedLedger, avro_chunks
from tests.simulation import checks
from tests.simulation.product.queries import pin
from tests.simulation.world import TOPIC, Pinned, World, tries

MINUTE = 60_000


Do = Callable[[World, int, int], None]


def with_part(do: Callable[[World, ManagedLedger, int], None]) -> Do:
    """The step on one of the partitions that there are."""

    def step(world: World, a: int, b: int) -> None:
        ml = world.part(a)
        if ml is not None:
            do(world, ml, b)

    return step


# -- producers ---------------------------------------------------------------------------------


def _publish(world: World, ml: ManagedLedger, b: int) -> None:
    version = world.version(b // 2)
    for number in range(b % 3 + 1):
        style = (b // 3 + number) % 4
        values = [world.value(version)]
        if style == 1:
            values = [world.value(version) for _ in range(b % 4 + 1)]
        null = [None] if style == 2 and b % 5 == 0 else None
        ahead = (0, 0, 0, 25 * 60 * MINUTE, -3 * 60 * MINUTE)[b % 5] if style == 3 else 0
        world.state.publish(
            ml, null or values, batch=style == 1, schema=version, producer_ahead_ms=ahead
        )


def _evolve(world: World, a: int, b: int) -> None:
    """The topic's schema gets another version."""
    schema = world.topic.schema
    begins = bool(schema.life) and not schema.times
    if world.settings.schemas and schema.newest < 3 and not (begins and _is_schema_early(world)):
        schema.register(world.state.brokers_clock.now_ms)


def _is_schema_early(world: World) -> bool:
    """Return whether a life of the registry would begin at a time that the clock showed before.

    Decision 36 says what is not certain then, so no history does that.
    """
    clock = world.state.brokers_clock
    return world.settings.late_schema and clock.now_ms < clock.latest_ms


def _register_anew(world: World, a: int, b: int) -> None:
    """The schema is deleted, mostly by force, and another one is registered, or none.

    No message that has begun goes on: its producer has to connect again.
    """
    schema = world.topic.schema
    if not (world.settings.late_schema and schema.times) or _is_schema_early(world):
        return
    world.chunked.clear()
    versions = 1
    if b % 3:
        # The same numbers again, and two at least: with one field there is no other order.
        versions = max(len(schema.times), 2)
        schema.delete_by_force()
        versions *= b % 5 != 4  # the registry has forgotten all
    elif schema.newest < 3:
        schema.delete()
    else:
        return
    for _ in range(versions):
        world.clock.advance(1)
        schema.register(world.state.brokers_clock.now_ms)


def _chunk(world: World, ml: ManagedLedger, b: int) -> None:
    """The next chunk of one of three messages, or of a new one; sometimes once more."""
    schema_now = world.topic.schema
    if world.settings.late_schema and (not schema_now.times or schema_now.life or schema_now.first):
        return
    begun = world.chunked.setdefault((ml.name, ml.created), {})
    name = b % 3
    uuid, sent, count = begun.get(name, (b"", 0, 0))
    if sent == count:
        world.numbers += 1
        uuid, sent, count = b"u%d" % world.numbers, 0, 2 + b // 3 % 2
    again = b % 11 == 0 and sent > 0
    number = sent - 1 if again else sent
    ahead = (0, 0, 25 * 60 * MINUTE, -3 * 60 * MINUTE)[b // 7 % 4]
    parts = [b"%s-%d;" % (uuid, one) for one in range(count)]
    schema = 0 if world.settings.schemas else None
    if schema is not None:
        parts = avro_chunks(parts)
    world.state.publish(
        ml,
        [parts[number]],
        chunk=(uuid, number, count),
        total=sum(map(len, parts)),
        schema=schema,
        producer_ahead_ms=ahead,
    )
    begun[name] = (uuid, number + 1, count)


def _transaction(world: World, ml: ManagedLedger, b: int) -> None:
    if not world.settings.transactions:
        return
    if ml.open and b % 3:
        some = sorted(ml.open)
        world.state.end_transaction(ml, some[b % len(some)], commit=b % 3 == 1)
        return
    world.numbers += 1
    transaction, version = world.numbers, world.version(b // 2)
    for _ in range(b % 2 + 1):
        world.state.publish(ml, [world.value(version)], transaction=transaction, schema=version)
    world.state.publish(ml, [world.value(version)], schema=version)


def _between(world: World, a: int, b: int) -> None:
    """Producers and brokers go on in the middle of a turn or a query."""

    def happens() -> None:
        if b % 2:
            _evolve(world, 0, 0)
        if b % 5 == 1:
            _skew(world, a // 2, b // 5)
        if b % 5 == 2:
            _outage(world, a // 2, b // 5)
        for ml in world.parts:
            _publish(world, ml, b)
            if a % 3:
                _seal(world, ml, 0)
                _publish(world, ml, a)

    if a % 2:
        checks.turn_while(world, a // 2 % 2, b % 40 + 1, happens)
    else:
        checks.ask_while(world, b % 40 + 1, happens)


# -- brokers -----------------------------------------------------------------------------------


def _seal(world: World, ml: ManagedLedger, b: int) -> None:
    world.state.unload(ml, recovery_ms=(0, 200, 60_000)[b % 3])


def _trim(world: World, a: int, b: int) -> None:
    for ml in world.parts:
        if ml.held or b % 4 == 0:
            world.state.trim(ml, "trimmed" if ml.held else "no hold yet")


def _time_to_live(world: World, ml: ManagedLedger, b: int) -> None:
    if HOLD in ml.cursors:
        world.state.expire_messages(ml)


def _add_partitions(world: World, a: int, b: int) -> None:
    if world.parts and world.settings.partitions > 0 and world.topic.count < 4:
        world.state.add_partitions(TOPIC.full_name, 1, subscriptions=b % 4 > 0)


def _remake(world: World, a: int, b: int) -> None:
    if world.parts:
        for one in world.pinned:
            one.excused.add("topic deleted")
        world.forget_copy()
        world.state.delete_topic(TOPIC.full_name)
        checks.ask(world, b)
    world.state.make_topic(TOPIC.full_name, world.settings.partitions)


def _bookies(world: World, a: int, b: int) -> None:
    world.state.bookies_down = not world.state.bookies_down
    if b % 2 and world.state.bookies_down:
        checks.ask(world, b)
        checks.turn(world, a % 2)
        world.state.bookies_down = False


def _lag(world: World, a: int, b: int) -> None:
    world.rest.lagging = not world.rest.lagging


def _advance(world: World, a: int, b: int) -> None:
    world.clock.advance((1, 11, 61, 61, 130, 60 * 50, 60 * 24 * 9)[a % 7] * MINUTE)


def _skew(world: World, a: int, b: int) -> None:
    """Somebody sets the clock of a host."""
    ahead_ms = (0, 4, -4, 30, -30, 3 * 60, -3 * 60, 24 * 60, -24 * 60)[b % 9] * MINUTE
    clock = world.clocks[a % len(world.clocks)]
    now_ms = world.clock.now_ms + ahead_ms
    if clock is world.state.brokers_clock:
        registered = world.topic.schema.registered.values()
        if world.settings.late_schema and now_ms <= max(registered, default=0) + 1000:
            return  # decision 36: messages as old as their definition
        if any(ml.restored for ml in world.parts) and _is_behind_table(world, now_ms):
            return
    clock.set_ahead(ahead_ms)


def _is_behind_table(world: World, now_ms: int) -> bool:
    """Return whether an offloaded ledger was closed later than ``now_ms``.

    Queries then take ledger ids that a restored cluster gives again for the old ones: the entry
    "a restored cluster" of docs/limitations.md. So no history does that.
    """
    parts = (*world.parts, *world.topic.gone)
    closed = [ledger.closed_ms or 0 for ml in parts for ledger in ml.ledgers if ledger.cold]
    return now_ms <= max(closed, default=0)


def _outage(world: World, a: int, b: int) -> None:
    """A server is away for some seconds, minutes, or longer; refused at once, or silent."""
    seconds = (2, 5, 20, 90, 600, 3 * 3600, 26 * 3600)[b % 7]
    world.outages.begin(SERVERS[a % len(SERVERS)], seconds * 1000, silent=b // 7 % 2 == 0)


def _restore(world: World, a: int, b: int) -> None:
    if not _is_behind_table(world, world.state.brokers_clock.now_ms) and world.state.restore():
        _foreign(world)


def _wipe(world: World, a: int, b: int) -> None:
    world.state.wipe()
    _foreign(world)


def _foreign(world: World) -> None:
    world.foreign = world.foreign or world.table_place.exists()
    world.forget_copy()
    world.pinned.clear()
    world.chunked.clear()


# -- offloaders --------------------------------------------------------------------------------


def _restart(world: World, a: int, b: int) -> None:
    world.hosts[a % 2] = world.new_host(a % 2)


def _maintain(world: World, a: int, b: int) -> None:
    if b % 4 == 0:
        checks.trouble(
            world, a % 2, ("crash", "fail", "meet")[b // 4 % 3], b % 50 + 1, maintain=True
        )
        return
    checks.turn(world, a % 2, maintain=True)


# -- queries -----------------------------------------------------------------------------------


def _pin(world: World, a: int, b: int) -> None:
    clients = world.new_clients()

    def make() -> None:
        expected, must = world.expectation(), world.must_refuse()
        query = pin(clients, TOPIC, token=b % 2 == 0)
        world.require(not must, f"a query says nothing of a loss: {must}")
        world.pinned.append(Pinned(query, expected, set()))

    if len(world.pinned) < 3:
        tries(make)


def _run_pinned(world: World, a: int, b: int) -> None:
    if world.pinned:
        checks.run_pinned(world, world.pinned[a % len(world.pinned)])


def _hide(world: World, a: int, b: int) -> None:
    """The table is out of sight for a query and a turn."""
    if not world.table_place.exists():
        return
    elsewhere = world.root / "elsewhere"
    world.table_place.rename(elsewhere)
    world.hidden = True
    try:
        checks.ask(world, b)
        if world.claimed():
            checks.turn(world, a % 2)
            world.require(not world.table_place.exists(), "a second table was begun")
    finally:
        world.hidden = False
        if world.table_place.exists():
            raise AssertionError
        elsewhere.rename(world.table_place)


KINDS: dict[str, tuple[int, Do]] = {
    "publish": (14, with_part(_publish)),
    "evolve": (2, _evolve),
    "register_anew": (2, _register_anew),
    "between": (5, _between),
    "chunk": (10, with_part(_chunk)),
    "transaction": (8, with_part(_transaction)),
    "seal": (12, with_part(_seal)),
    "turn": (12, lambda world, a, b: checks.turn(world, a % 2)),
    "round": (3, lambda world, a, b: checks.check_round(world, a % 2)),
    "crash": (6, lambda world, a, b: checks.trouble(world, a % 2, "crash", b % 70 + 1)),
    "fail": (6, lambda world, a, b: checks.trouble(world, a % 2, "fail", b % 70 + 1)),
    "meet": (5, lambda world, a, b: checks.trouble(world, a % 2, "meet", b % 70 + 1)),
    "restart": (2, _restart),
    "maintain": (3, _maintain),
    "clean_log": (1, lambda world, a, b: world.clean_log()),
    "trim": (8, _trim),
    "time_to_live": (1, with_part(_time_to_live)),
    "delete_hold": (1, with_part(lambda world, ml, b: world.state.delete_hold(ml))),
    "add_partitions": (2, _add_partitions),
    "remake": (1, _remake),
    "bookies": (1, _bookies),
    "lag": (2, _lag),
    "advance": (8, _advance),
    "skew": (2, _skew),
    "outage": (2, _outage),
    "backup": (1, lambda world, a, b: world.state.backup()),
    "restore": (1, _restore),
    "wipe": (1, _wipe),
    "copy_table": (2, lambda world, a, b: world.copy_table()),
    "restore_table": (1, lambda world, a, b: world.restore_table()),
    "give_up_newer": (1, lambda world, a, b: world.give_up_newer()),
    "query": (10, lambda world, a, b: checks.ask(world, b)),
    "stumble": (3, lambda world, a, b: checks.stumble(world, b % 40 + 1)),
    "count": (3, lambda world, a, b: checks.ask_count(world)),
    "pin": (4, _pin),
    "run_pinned": (5, _run_pinned),
    "hide": (1, _hide),
    "settle": (2, lambda world, a, b: checks.settle(world)),
    "idle": (1, lambda world, a, b: checks.idle(world)),
    "live": (2, lambda world, a, b: checks.live(world, a % 2)),
}
"""By name: how often it is drawn, and what it does."""
