"""Micro-batches of maxBytesPerTrigger: by the bytes of entries, and of the table's files."""

import random
from itertools import pairwise
from pathlib import Path
from string import ascii_letters, digits

from reader.model import Partition
from reader.storage import open_storage
from reader.stream import StreamOptions, Tails, TopicStream
from testbed.simulation import Effects
from tests.simulation.product.clients import SimulatedClients
from tests.unit.turns.small_pulsar import HOLD, TOPIC, SmallPartition, SmallPulsar

PARTITION = Partition(TOPIC, -1)
COUNT, SIZE, BATCH = 40, 4000, 10


def entries_of_batches(pulsar: SmallPulsar, directory: Path) -> list[int]:
    """How many entries of ledger 5 each micro-batch has."""
    config = pulsar.config(directory)
    admin, storage = pulsar.admin_client(config.pulsar), open_storage(config.storage)
    options = {"topic": TOPIC.local_name, "maxBytesPerTrigger": f"{SIZE * BATCH * 11 // 10}b"}
    clients = SimulatedClients(config, admin, storage, pulsar.state, Effects(), {})
    with clients, Tails(clients) as tails:
        stream = TopicStream(clients, StreamOptions.of(options), tails, warn=print)
        at, ends = stream.bounds()[0], [-1]
        while (end := stream.next(at)[0]) != at:
            at = end
            position = at.of(PARTITION).at
            ends.append(position.entry if position.ledger == 5 else COUNT - 1)
    return [last - first for first, last in pairwise(ends)]


def test_in_both_tiers(tmp_path: Path) -> None:
    """Of text that does not compress well."""
    chance = random.Random(7)
    part = SmallPartition(PARTITION, first=5)
    pulsar = SmallPulsar(part)
    pulsar.create_hold(PARTITION, HOLD)
    part.write(*("".join(chance.choices(ascii_letters + digits, k=SIZE)) for _ in range(COUNT)))
    part.seal(6)
    hot = entries_of_batches(pulsar, tmp_path)
    assert hot == [BATCH] * (COUNT // BATCH)
    pulsar.offload(pulsar.config(tmp_path))
    part.trim()
    assert part.ledgers == [6]
    cold = entries_of_batches(pulsar, tmp_path)
    assert sum(cold) == COUNT
    # Text of 62 letters takes three quarters of its bytes in a file.
    assert BATCH <= max(cold) <= 1.6 * BATCH
