"""What may look like a restored cluster, and is none: turns and queries go on."""

from pathlib import Path

from testbed.simulation import Ledger
from tests.unit.decode.entries import entry
from tests.unit.turns.pulsar_world import START, World


def test_no_ledger_is_open_while_bookies_are_missing(tmp_path: Path) -> None:
    """The first write to the open ledger failed: Pulsar dropped it, and can make no other."""
    with World(tmp_path) as world:
        world.ml.cursors["keeper"] = (10, 0)
        offloader = world.offloader()
        world.seal(entry(b"a", publish_time=START))
        offloader.turn(world.topic, now=True)
        assert (world.held.ledger, world.held.entry) == (11, 0)
        world.delete(11)
        moves = list(world.moves)
        for turns in (offloader, world.offloader()):
            turns.turn(world.topic, now=True)
            assert world.hot() == []
        assert world.moves == moves
        assert not [one for one in world.said if "has moved" in one]
        world.ml.ledgers.append(Ledger(12))
        world.seal(entry(b"b", publish_time=START))
        offloader.turn(world.topic, now=True)
        assert [row[2] for row in world.cold()] == [b"a", b"b"]


def test_a_broker_that_lags_gives_no_close_time(tmp_path: Path) -> None:
    """``internal-info`` is any broker's: of the last ledger that it knows, the time is now."""
    with World(tmp_path) as world:
        offloader = world.offloader()
        offloader.observe(world.topic)
        world.ml.cursors["keeper"] = (10, 0)
        world.seal(entry(b"a", publish_time=START))
        world.now += 5
        world.rest.lagging = True
        listing = world.admin.ledgers(world.partition)
        assert listing.ledgers[0].closed_at == world.now  # an age, and no more
        assert listing.identity(listing.ledgers[0]) is None
        offloader.turn(world.topic, now=True)
        world.rest.lagging = False
        for turns in (offloader, world.offloader()):
            world.now += 60_000
            world.seal(entry(b"b", publish_time=START))
            turns.turn(world.topic, now=True)
            assert world.hot() == []
        assert [row[2] for row in world.cold()] == [b"a", b"b", b"b"]
        # What was offloaded stays as it is, whoever is asked.
        world.rest.lagging = True
        assert world.hot() == []
