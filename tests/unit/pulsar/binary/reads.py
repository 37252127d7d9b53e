"""What the tests read: a ledger of 300 entries, and what comes of it."""

from __future__ import annotations

from reader.config import PulsarConfig
from reader.model import Partition
from reader.pulsar.binary import BrokerClient, Publisher
from tests.unit.pulsar.binary.fake_broker import entry

__all__ = ["ALL", "ENTRIES", "LEDGER", "PARTITION", "client_of", "publisher_of", "read"]

PARTITION = Partition.parse("persistent://public/default/orders-partition-3")
LEDGER = 7
ENTRIES = {(LEDGER, number): entry(b"payload %d" % number * 20) for number in range(300)}
ALL = list(range(300))


def client_of(url: str, timeout: str = "2s", **more: object) -> BrokerClient:
    return BrokerClient(
        PulsarConfig.model_validate({"service_url": url, "timeout": timeout, **more})
    )


def publisher_of(url: str, timeout: str = "2s", **more: object) -> Publisher:
    return Publisher(PulsarConfig.model_validate({"service_url": url, "timeout": timeout, **more}))


def read(
    client: BrokerClient, first: int = 0, last: int = 299, ledger: int = LEDGER, block: int = 4096
) -> list[int]:
    """The ids of the entries that come, each of which has its bytes."""
    found = []
    for one in client.read(PARTITION, ledger, first, last, block_bytes=block):
        assert one.ledger_id == ledger
        for number, at, size in zip(one.entry_ids, one.offsets, one.lengths, strict=True):
            if (ledger, int(number)) in ENTRIES:
                assert one.arena[at : at + size].tobytes() == ENTRIES[ledger, int(number)]
            found.append(int(number))
    return found
