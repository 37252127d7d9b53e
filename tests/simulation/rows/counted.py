"""Batches with wrong headers (numbers of messages, times): counted and read in each tier."""

from random import Random
from typing import Any

from tests.simulation.checks import turn
from tests.simulation.product.queries import count, pin
from tests.simulation.world import TOPIC, Settings, World, new_world

_YEARS_8000_MS = 8_000 * 365 * 86_400_000
"""Python has no times beyond the year 9999: neither plans nor statistics may need one."""
_PRODUCERS = (b"pulsar", b"kafka", b"go")


def count_and_read(seed: int) -> None:
    """Raise AssertionError if ``count(*)`` is not the number of rows, or a tier has other rows."""
    random = Random(seed)
    settings = Settings(
        broker_times=random.random() < 0.5,
        transactions=random.random() < 0.3,
        broker=random.random() < 0.3,
    )
    with new_world(settings) as world:
        wrong = {name: random.choice((0.0, 0.2, 1.0)) for name in _PRODUCERS}
        for _ in range(random.randint(1, 4)):
            for _ in range(random.randint(1, 7)):
                _publish(world, random, wrong)
            if random.random() < 0.7:
                world.state.unload(world.parts[0])
            rows = _check(world, seed)
            turn(world, 0)
            assert _check(world, seed) == rows, (seed, "other rows after the offload")
        # The log forgets its first commits, so that a plan has to read rows.
        world.clock.advance(40 * 86_400_000)
        _publish(world, random, wrong)
        world.state.unload(world.parts[0])
        turn(world, 0)
        world.clean_log()
        _check(world, seed)


def _check(world: World, seed: int) -> list[object]:
    clients = world.new_clients()
    query = pin(clients, TOPIC)
    assert str(query.plan)  # as EXPLAIN shows it
    rows = sorted(query.rows(clients), key=str)
    found = count(world.new_clients(), TOPIC)
    assert found == len(rows), (seed, found, len(rows))
    return [*rows]


def _publish(world: World, random: Random, wrong: dict[bytes, float]) -> None:
    producer = random.choice(_PRODUCERS)
    values = [world.value(None) for _ in range(random.randint(1, 6))]
    more: dict[str, Any] = {}
    if random.random() < wrong[producer]:
        more["num_messages_in_batch"] = random.choice((0, 1, len(values) + 1, len(values) + 9, 99))
    ml = world.parts[0]
    transaction = next(iter(ml.open), world.clock.now_ms)  # no two have one id
    world.state.publish(
        ml,
        values,
        batch=True,
        compressed=random.random() < 0.5,
        producer_name=producer,
        producer_ahead_ms=_YEARS_8000_MS if random.random() < 0.1 else 0,
        transaction=transaction if world.settings.transactions and random.random() < 0.2 else None,
        **more,
    )
    if ml.open and random.random() < 0.5:
        world.state.end_transaction(ml, transaction, commit=random.random() < 0.5)
