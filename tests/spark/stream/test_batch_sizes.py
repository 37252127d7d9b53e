"""What limits cut, in both tiers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from string import ascii_letters, digits

from spark_ext import PulsarLake
from testbed.admin import Admin
from tests.spark.stream.conftest import Topic
from tests.spark.stream.runs import ids, reader, run

COUNT, ROW, BATCH = 100, 4000, 40


def test_micro_batches_are_about_as_large_as_they_may_be(
    lake: PulsarLake,
    admin: Admin,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
    tmp_path: Path,
) -> None:
    """Hot by the bytes of entries, in the table by those of files: text that does not compress."""
    topic = make(2)
    schema = {
        "type": "record",
        "name": "O",
        "fields": [
            {"name": name, "type": kind} for name, kind in (("id", "long"), ("t", "string"))
        ],
    }
    chance = random.Random(7)
    texts = ["".join(chance.choices(ascii_letters + digits, k=ROW)) for _ in range(COUNT)]
    topic.send_as(schema, ({"id": n, "t": text} for n, text in enumerate(texts)))
    stream = reader(lake, maxBytesPerTrigger=f"{ROW * BATCH // 1024}k").table(topic.table)

    def sizes(name: str) -> list[int]:
        batches = run(stream, tmp_path / name)
        assert ids(batches) == list(range(COUNT))
        return [len(one) for one in batches]

    hot = sizes("hot")
    admin.seal(topic.name)
    offload(topic.name)
    cold = sizes("cold")
    # Entries of ten, and all of one millisecond together or not at all.
    assert max(hot) <= BATCH
    assert len(hot) <= 4 * COUNT / BATCH
    # Their statistics have a file's bytes, of which text of 62 letters takes three quarters.
    assert max(cold) <= 1.6 * BATCH
    assert len(cold) <= 2 * COUNT / BATCH


def test_partitions_that_are_far_apart_are_cut_at_one_time(
    lake: PulsarLake,
    admin: Admin,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
    tmp_path: Path,
) -> None:
    """Each is written to at another time; the first half lies in the table."""
    topic = make(3)
    first = 0
    for index, count in ((0, 100), (1, 60), (0, 20), (2, 100), (1, 20)):
        topic.send_to(index, first, count)
        first += count
        time.sleep(0.01)
        if index == 2:
            admin.seal(topic.name)
            offload(topic.name)
    stream = reader(lake, maxMessagesPerTrigger=70).table(topic.table)
    batches = run(stream, tmp_path)
    assert ids(batches) == list(range(first))
    assert all(len(one) <= 70 for one in batches)
    for one, other in pairwise(batches):
        assert max(row["__publishTime"] for row in one) <= min(
            row["__publishTime"] for row in other
        )
    assert {row["__partition"] for row in batches[0]} == {0}
