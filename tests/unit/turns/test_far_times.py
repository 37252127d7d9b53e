"""Publish times beyond the year 9999, as of a producer that gives microseconds for milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from reader.decode import Decryption
from reader.plan import take_snapshot
from reader.plan.offloaded import cold_part
from reader.sources import RowFormat, read_ciphertext
from reader.table import TopicTable
from tests.unit.decode.entries import broker, entry
from tests.unit.decode.test_decryption import RSA, for_rsa, pem, sealed_entry
from tests.unit.turns.pulsar_world import START, World
from tests.unit.turns.test_encrypted_chunks import use_keys


def test_ciphertext_of_a_broker_of_another_time(world: World, tmp_path: Path) -> None:
    use_keys(world, tmp_path, {"mine"}, store_plaintext=False)
    head = broker(timestamp=START * 1000, index=4)
    world.seal(sealed_entry(b"x", {"mine": for_rsa()}, head=head, publish_time=START))
    world.offloader().turn(world.topic, now=True)
    snapshot = take_snapshot(world.clients, world.topic)
    form = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
    keys = Decryption({"mine": pem(RSA)}.get)
    [batch] = read_ciphertext(world.table(), world.partition, form, keys)
    times = batch.column("__brokerPublishTime").cast(pa.int64()).to_pylist()
    assert (times, batch.column("__error").to_pylist()) == ([START * 1_000_000], [None])


def test_ledgers_of_which_only_the_rows_tell(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the log was cleaned, ``explain`` and ``segments`` read the rows."""
    far = START * 1000
    world.seal(entry(b"a", publish_time=START), entry(b"b", publish_time=far))
    world.offloader().turn(world.topic, now=True)

    def no_commits(self: TopicTable) -> Iterator[Any]:
        return iter(())

    monkeypatch.setattr(TopicTable, "commits", no_commits)
    [segment] = cold_part(world.table()).segments
    assert (segment.min_publish_time, segment.max_publish_time) == (START * 1000, far * 1000)
    assert segment.rows == 2
