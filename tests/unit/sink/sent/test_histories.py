"""Random histories of a write: senders that are killed, replays, deletions, clocks that jump.

Each sequence id is stored exactly once, or a sender says that nobody can tell; never twice, and
never missing where the write is said to be sent. A seed is one history: ``history(world, seed)``.
"""

import os
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from reader.errors import PulsarLakeError, UnavailableError
from reader.sink import Manifest
from tests.unit.decode.entries import PARTITION
from tests.unit.pulsar.binary.fake_broker import Session
from tests.unit.pulsar.binary.fake_topic import Sent
from tests.unit.sink.worlds import World, batches, reads_behind

_HOUR = 1.0
_FORGOTTEN_HOURS = 6.0
_BATCHES = 3


@dataclass
class History:
    """``stored``: first ids of all that was ever stored, deleted or not. ``hours``: since the last
    connection. ``decided_hours``: since the version was decided, by the storage's clock; ``skew``:
    hours by which the driver's is ahead of it."""

    world: World
    chance: random.Random
    stored: list[int] = field(default_factory=list)
    hours: float = 0.0
    decided_hours: float = 0.0
    skew: int = 0

    def pause(self, hours: float) -> None:
        """Time passes: a name that nobody uses is forgotten."""
        self.hours += hours
        self.decided_hours += hours
        if self.hours >= _FORGOTTEN_HOURS:
            self.world.topic.forget()

    def disturb(self) -> None:
        """What happens to the topic between two attempts."""
        topic = self.world.topic
        for _ in range(self.chance.randrange(3)):
            match self.chance.choice(["unload", "trim", "pause", "long pause"]):
                case "unload":
                    topic.unload()
                case "trim":
                    topic.trim()
                case "pause":
                    self.pause(self.chance.uniform(0, 0.1))
                case _:
                    self.pause(self.chance.choice([0.5, 7.0, 24.0]))

    def breaks(self) -> None:
        """The next attempt ends before an entry, or behind it; the topic may be unloaded."""
        left, kept = self.chance.randrange(_BATCHES + 1), self.chance.random() < 0.5
        unloaded = self.chance.random() < 0.5

        def before(session: Session, sent: Sent) -> bool:
            nonlocal left
            left -= 1
            if left != 0:
                return True
            if kept:
                self.world.topic.store(session, sent)
            if unloaded:
                self.world.topic.unload()
            self.world.broker.hang_up()
            return False

        self.world.topic.before = before

    def attempt(self, manifest: Manifest, *, fresh: bool) -> bool:
        """Whether all of it is said to be sent."""
        path = self.world.directory / manifest.path
        at = path.stat().st_mtime
        now = at - self.decided_hours * 3600
        os.utime(path, (now, now))
        self.hours = 0.0
        try:
            self.world.send(manifest, fresh=fresh)
        except UnavailableError:
            return False
        except PulsarLakeError as error:
            assert "nobody can tell" in error.message, error
            raise
        finally:
            os.utime(path, (at, at))
        return True


def history(world: World, seed: int) -> bool:
    """One write of several versions; whether a sender has said that nobody can tell."""
    chance = random.Random(seed)
    one = History(world, chance)
    push, first, wanted = world.topic.push, 1000, []

    def pushed(sent: Sent) -> None:
        one.stored.append(sent.sequence)
        push(sent)

    world.topic.push = pushed  # type: ignore[method-assign]
    for version in range(chance.randint(1, 3)):
        one.disturb()
        manifest = world.manifest(batches(_BATCHES), first=first if version else 0)
        one.decided_hours = 0.0
        one.skew = chance.choice([0, 0, -24, 2, 24])
        manifest = replace(manifest, created=manifest.created + one.skew * 3_600_000)
        ids = [manifest.partitions[0].first + 3 * n for n in range(_BATCHES)]
        wanted += ids
        fresh = True
        for _ in range(chance.randrange(4)):
            one.breaks()
            try:
                done = one.attempt(manifest, fresh=fresh)
            except PulsarLakeError:
                return _told(one, wanted)
            fresh = False
            if done and chance.random() < 0.5:
                break  # else its driver dies before it is marked as sent
            one.disturb()
        world.topic.before = lambda session, sent: True
        try:
            assert one.attempt(manifest, fresh=fresh)
        except PulsarLakeError:
            return _told(one, wanted)
        first = ids[-1] + 3
    assert Counter(one.stored) == Counter(wanted), (seed, one.stored)
    return False


def _told(one: History, wanted: list[int]) -> bool:
    """That nobody can tell is said of what was decided an hour ago only, or seems to be. Nothing is
    there twice by then."""
    assert one.decided_hours + max(0, -one.skew) >= _HOUR
    assert not [sequence for sequence, times in Counter(one.stored).items() if times > 1]
    assert set(one.stored) <= set(wanted)
    return True


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_each_id_is_stored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    with World(tmp_path) as world:
        monkeypatch.setattr("reader.scan.read_behind", reads_behind(world))
        assert world.log_end(PARTITION).created_at
        history(world, seed)
