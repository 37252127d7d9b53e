"""What the tests read: a ledger of 300 entries, and what comes of it."""

from collections.abc import Callable

import pytest
from google.protobuf.message import Message

from reader.config import PulsarConfig
from reader.model import Partition
from reader.pulsar.binary import BrokerClient, Publisher
from reader.pulsar.binary.broker_connection import BrokerConnection
from reader.wire.pulsar_pb2 import CommandSend
from tests.unit.pulsar.binary.fake_broker import FakeBroker, entry

PARTITION = Partition.parse("persistent://public/default/orders-partition-3")
LEDGER = 7
ENTRIES = {(LEDGER, number): entry(b"payload %d" % number * 20) for number in range(300)}
ALL = list(range(300))


class Time:
    """A clock that only ``sleep`` moves: an answer that is on its way never comes too late.

    With it there are as many attempts as the pauses between them leave time for.
    """

    def __init__(self) -> None:
        self.now = self._began = 100.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def waited(self) -> float:
        return self.now - self._began


class Passing(Time):
    """A clock that each look moves by ``step``, as long as ``goes`` says so.

    What a broker does in its threads takes no time by it: a busy machine changes no outcome.
    """

    def __init__(self, step: float, goes: Callable[[], bool]) -> None:
        super().__init__()
        self._step = step
        self._goes = goes

    def clock(self) -> float:
        if self._goes():
            self.now += self._step
        return self.now


def idle(broker: FakeBroker, patch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether the broker is done with all that clients have asked it from now on, but SEND."""
    sent = 0
    send = BrokerConnection.send

    def counted(connection: BrokerConnection, command: Message) -> None:
        nonlocal sent
        sent += 1
        send(connection, command)

    patch.setattr(BrokerConnection, "send", counted)
    return lambda: sum(one is not CommandSend for one in broker.done) == sent


def client_of(
    url: str, timeout: str = "120s", *, time: Time | None = None, **more: object
) -> BrokerClient:
    config = PulsarConfig.model_validate({"service_url": url, "timeout": timeout, **more})
    if time is None:
        return BrokerClient(config)
    return BrokerClient(config, clock=time.clock, sleep=time.sleep)


def publisher_of(
    url: str, timeout: str = "120s", *, time: Time | None = None, **more: object
) -> Publisher:
    config = PulsarConfig.model_validate({"service_url": url, "timeout": timeout, **more})
    if time is None:
        return Publisher(config)
    return Publisher(config, clock=time.clock, sleep=time.sleep)


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
