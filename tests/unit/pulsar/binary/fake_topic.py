"""What a fake broker stores of producers: names, deduplication, receipts; as Pulsar 4.2 does."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from google.protobuf.message import Message

from reader.kernels.crc32c import crc32c
from reader.wire import pulsar_pb2 as api
from tests.unit.pulsar.binary.fake_broker import FakeBroker, Reaction, Session

LEDGER = 7


@dataclass(frozen=True, slots=True)
class Sent:
    """One SEND: what its command says, the entry behind it, and where that is stored."""

    producer: int
    name: str
    sequence: int
    highest: int
    messages: int
    entry: bytes
    place: tuple[int, int] = (-1, -1)

    @property
    def metadata(self) -> api.MessageMetadata:
        size = int.from_bytes(self.entry[6:10], "big")
        return api.MessageMetadata.FromString(self.entry[10 : 10 + size])

    @property
    def payload(self) -> bytes:
        return self.entry[10 + int.from_bytes(self.entry[6:10], "big") :]

    @property
    def whole(self) -> bool:
        """Whether its checksum is right."""
        found = crc32c(np.frombuffer(self.entry, np.uint8), 6, len(self.entry) - 6)
        return self.entry[:2] == b"\x0e\x01" and self.entry[2:6] == int(found).to_bytes(4, "big")


def receipt(sent: Sent, at: tuple[int, int]) -> api.CommandSendReceipt:
    """SEND_RECEIPT; (-1, -1): it was there already."""
    return api.CommandSendReceipt(
        producer_id=sent.producer,
        sequence_id=sent.sequence,
        message_id=api.MessageIdData(ledgerId=at[0], entryId=at[1]),
    )


def send_error(session: Session, sent: Sent, code: int, text: str = "no") -> None:
    answer = api.CommandSendError(
        producer_id=sent.producer, sequence_id=sent.sequence, message=text.encode()
    )
    answer.error = code  # type: ignore[assignment]  # brokers may have newer ones
    session.send(answer)


def closing(producer: int, url: str | None = None) -> api.CommandCloseProducer:
    """CLOSE_PRODUCER by the broker."""
    return api.CommandCloseProducer(
        producer_id=producer, request_id=-1, assignedBrokerServiceUrl=url
    )


class FakeTopic:
    """The topic of a ``FakeBroker``.

    ``stored``: what is in the ledger. ``came``: all that was sent. ``asked``: what each PRODUCER
    said; ``opened``: those that were opened. ``last``: by name, the highest id; without
    ``deduplication`` nothing is remembered. ``before``: called for each SEND; whether it goes on as
    usual. ``busy``: how many attempts to open a producer find that another has the name.
    ``ledger``: the open one; ``sealed``: those before it that have entries and are not deleted.
    """

    def __init__(self, broker: FakeBroker, *, deduplication: bool = True) -> None:
        self.broker = broker
        self.deduplication = deduplication
        self.stored: list[Sent] = []
        self.came: list[Sent] = []
        self.asked: list[api.CommandProducer] = []
        self.opened: list[api.CommandProducer] = []
        self.last: dict[str, int] = {}
        self.before: Callable[[Session, Sent], bool] = lambda session, sent: True
        self.busy = 0
        self.schema_version = b""
        self.ledger = LEDGER
        self.sealed: list[int] = []
        self._entries = 0
        self._names: dict[tuple[int, int], str] = {}
        self._holders: dict[str, Session] = {}
        self._made = 0
        reactions: dict[type[Message], Reaction] = {
            api.CommandProducer: self._open,
            api.CommandSend: self._send,
            api.CommandCloseProducer: self._close,
        }
        broker.reactions |= reactions

    def forget(self) -> None:
        """As after hours of silence."""
        self.last.clear()

    def refuse(self, sequence: int, code: int, text: str) -> None:
        """Refuse this entry of the first connection, and take those behind it."""

        def before(session: Session, sent: Sent) -> bool:
            refused = sent.sequence == sequence and len(self.opened) == 1
            if refused:
                send_error(session, sent, code, text)
            return not refused

        self.before = before

    def unload(self) -> None:
        """As its broker gives it up, and another one loads it: an empty ledger is dropped."""
        if self._entries:
            self.sealed.append(self.ledger)
        self.ledger += 1
        self._entries = 0

    def trim(self) -> None:
        """As nobody needs any more what is sealed."""
        self.stored = [one for one in self.stored if one.place[0] == self.ledger]
        self.sealed.clear()

    def end(self) -> tuple[int, int]:
        """As Pulsar gives ``lastConfirmedEntry``."""
        if not self._entries and self.sealed:
            last = self.sealed[-1]
            return last, max(one.place[1] for one in self.stored if one.place[0] == last)
        return self.ledger, self._entries - 1

    def store(self, session: Session, sent: Sent) -> None:
        """As usual: stored and confirmed, or dropped and confirmed."""
        if self.deduplication and sent.sequence <= self.last.get(sent.name, -1):
            session.send(receipt(sent, (-1, -1)))
            return
        self.push(sent)
        session.send(receipt(sent, self.stored[-1].place))

    def push(self, sent: Sent) -> None:
        """Stored, and nobody hears of it."""
        self.stored.append(replace(sent, place=(self.ledger, self._entries)))
        self._entries += 1
        if self.deduplication:
            self.last[sent.name] = sent.highest

    def ids(self) -> list[int]:
        """First ids of what is stored, in order."""
        return [one.sequence for one in self.stored]

    def _open(self, session: Session, command: api.CommandProducer) -> None:
        self.asked.append(command)
        self._made += 1
        name = command.producer_name or f"made-up-{self._made}"
        holder = self._holders.get(name)
        if self.busy > 0 or (holder is not None and not holder.closed):
            self.busy -= 1
            text = f"NamingException: Producer with name '{name}' is already connected"
            session.error(command.request_id, 16, text)
            return
        self.opened.append(command)
        self._holders[name] = session
        self._names[id(session), command.producer_id] = name
        session.send(
            api.CommandProducerSuccess(
                request_id=command.request_id,
                producer_name=name,
                last_sequence_id=self.last.get(name, -1),
                schema_version=self.schema_version,
            )
        )

    def _send(self, session: Session, command: api.CommandSend) -> None:
        name = self._names.get((id(session), command.producer_id))
        if name is None or session.closed:
            return  # as brokers do: nothing is stored, and nothing said
        sequence, several = command.sequence_id, command.HasField("highest_sequence_id")
        highest = command.highest_sequence_id if several else sequence
        sent = Sent(
            command.producer_id, name, sequence, highest, command.num_messages, session.entry
        )
        self.came.append(sent)
        if self.before(session, sent):
            self.store(session, sent)

    def close_producer(self, session: Session, sent: Sent, url: str | None = None) -> None:
        """By the broker."""
        self.drop(session, sent.producer)
        session.send(closing(sent.producer, url))

    def drop(self, session: Session, producer: int) -> None:
        name = self._names.pop((id(session), producer), None)
        if name is not None:
            self._holders.pop(name, None)

    def _close(self, session: Session, command: api.CommandCloseProducer) -> None:
        self.drop(session, command.producer_id)
        session.send(api.CommandSuccess(request_id=command.request_id))
