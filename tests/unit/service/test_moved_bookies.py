"""Ledgers that autorecovery has moved to other bookies since they were listed."""

from pathlib import Path
from typing import Any

import pytest

from reader.model import Partition
from tests.unit.bookkeeper.fake_bookie import FakeBookie, answer, batch_answer
from tests.unit.turns.small_pulsar import HOLD, TOPIC, OddRest, SmallPartition, SmallPulsar


class MovingRest(OddRest):
    """Lists ledgers at ``former`` once, and then where they are."""

    former = ""

    def answer(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        bookie = self.state.bookie
        if path.endswith("/internalStats") and self.former:
            self.state.bookie, self.former = self.former, ""
        found = super().answer(method, path, body)
        self.state.bookie = bookie
        return found


@pytest.mark.parametrize("lost", [True, False], ids=["silent", "empty"])
@pytest.mark.parametrize("what", ["offload", "query"])
def test_they_are_read_where_they_are_now(tmp_path: Path, what: str, lost: bool) -> None:
    """The former bookie is away, or was set up anew without its ledgers."""
    empty = FakeBookie(
        lambda request, ledger, entry: answer(request, 402, ledger, entry),
        lambda request, ledger, first, count, size: batch_answer(request, 402, ledger, first),
    )
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part, rest=MovingRest)
    config = pulsar.config(tmp_path, pulsar={"timeout": "2s"})
    pulsar.create_hold(part.partition, HOLD)
    part.write("5a", "5b")
    part.roll(6)
    part.write("6a")
    pulsar.rest.former = "127.0.0.1:1" if lost else empty.address  # type: ignore[attr-defined]
    if what == "query":
        assert sorted(pulsar.query(config)) == ["5a", "5b", "6a"]
        return
    with pulsar.offloader(config) as offloader:
        turn = offloader.turn(TOPIC, now=True)
    assert turn.committed is not None
    assert turn.committed.rows == 2
    assert sorted(pulsar.query(config)) == ["5a", "5b", "6a"]
