"""What is staged for one partition, sent: each entry once, however often this is run.

The producer's name and the sequence ids are in the manifest, and the broker drops what it has
(deduplication). So all of it is sent again whenever there is a doubt, and nothing counts but a
receipt: what the broker says at connect may have been lost before it was stored.

Where the broker has forgotten the name (it does after some hours of silence,
``brokerDeduplicationProducerInactivityTimeoutMinutes``) it says -1, as for a name that it has never
heard: then the target is read, from where it ended when the manifest was made. If messages behind
that position may have been deleted, a write that was decided a short while ago has sent nothing:
the broker would still know the name. Of an older one nobody can tell.

A receipt for what was there already is expected where it was sent before, and nowhere else. There
it is believed only once the target has been read: an entry that was refused, while one behind it
was stored, gets such a receipt as well. What the target has deleted meanwhile cannot be read: then
it is believed, as consumers have had it, unless an entry was refused before.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Self

import numpy as np

from reader.clients import Clients
from reader.encode import EncodedEntry, stored_payload
from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from reader.model import Partition
from reader.pulsar.binary import OutgoingEntry, Producer
from reader.sink.arrived import Arrived
from reader.sink.deduplication import Refusals, is_remembered
from reader.sink.manifest import Manifest, PartitionEntries
from reader.sink.staged_entries import ShownSchema
from reader.sink.staging import StagedEntries, inline_of
from reader.wire.pulsar_pb2 import MessageMetadata

_BUSY_SECONDS = 120.0
"""How long the name may be another's: a broker that misses a client asks it twice within 60 s."""
_FRUITLESS = 5
"""Attempts without an entry more that the broker stores, before it is given up."""
_PAUSE = 0.5
_SENT_AGAIN = "with the option delivery = at-least-once all of it is sent, perhaps again"


@dataclass(frozen=True, slots=True)
class Sent:
    """``ids``: sequence ids that are in the partition now; ``repeated``: how many entries of them
    were there already."""

    partition: str
    ids: int
    repeated: int


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """What one partition gets of a manifest, with those inline bytes that are its own.

    ``producer``: the name under which it is sent. ``decided``: path of the manifest. ``created``:
    when that was, by the driver's clock, in ms. ``fresh``: nobody has tried to send it before.
    """

    producer: str
    decided: str
    created: int
    encrypted: bool
    fresh: bool
    entries: PartitionEntries
    inline: bytes

    @classmethod
    def of(cls, manifest: Manifest, entries: PartitionEntries, *, fresh: bool) -> Self:
        own = inline_of(manifest, entries)
        about = manifest.producer, manifest.path, manifest.created, manifest.encrypted
        return cls(*about, fresh, *own)


def send_partition(
    clients: Clients,
    task: PartitionTask,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Sent:
    """Send what a task has. ``now``: s since the epoch, for publish times.

    Raises UnavailableError where the brokers do not take it: then it may be run again.
    """
    return _Sending(clients, task, now, sleep).sent()


class _Sending:
    """One run of a task. ``confirmed``: the last id that is stored, as far as is known.

    ``began``: something may have been sent that its producer does not know of. ``tried``: anything
    may have been, under this name and these ids. ``repeated``: ids (from, to) that were there.
    """

    def __init__(
        self,
        clients: Clients,
        task: PartitionTask,
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._clients = clients
        self._task = task
        self._entries = task.entries
        self._now = now
        self._sleep = sleep
        self._partition = Partition.parse(task.entries.partition)
        self._staged = StagedEntries(clients, task.entries, task.inline)
        self._refusals = Refusals(clients, task.decided)
        self._confirmed = task.entries.first - 1
        self._began = self._tried = not task.fresh
        self._looked = False
        self._repeated: list[tuple[int, int]] = []

    def sent(self) -> Sent:
        fruitless = 0
        while True:
            before = self._confirmed
            try:
                self._attempt()
                break
            except NotFoundError as error:
                error.hint = (
                    "was the topic deleted, or made again with fewer partitions, since this was "
                    "decided? A stream or a txnAppId goes on with the option delivery = "
                    "at-least-once"
                )
                raise
            except UnavailableError:
                self._began = True
                fruitless = 0 if self._confirmed > before else fruitless + 1
                if fruitless >= _FRUITLESS:
                    raise
                self._sleep(_PAUSE * 2**fruitless)
        if self._repeated:
            self._verify()
        return Sent(self._entries.partition, self._entries.ids, len(self._repeated))

    def _attempt(self) -> None:
        self._refusals.note()
        producer: Producer | None = None
        try:
            with self._clients.publisher() as publisher:
                producer = publisher.producer(
                    self._partition,
                    name=self._task.producer,
                    schema=self._entries.schema.message,
                    encrypted=self._task.encrypted,
                    seconds=_BUSY_SECONDS,
                )
                require_same_schema(producer, self._entries.schema)
                _require_known(producer, self._entries)
                # Looked at once: as long as the broker knows of nothing, nobody has sent since,
                # though it may take this connection for dead meanwhile.
                known = producer.last_sequence >= max(self._entries.before, 0)
                if self._tried and not (self._looked or known):
                    highest = self._found(self._arrived())
                    self._looked = True
                    if highest > self._confirmed:
                        self._repeated.append((self._confirmed + 1, highest))
                        self._confirmed = highest
                self._tried = True
                self._send(producer)
                self._take_repeated(producer)
                producer.close()
        except UnavailableError:
            if producer is not None:
                self._take_repeated(producer)
                if (waiting := producer.first_waiting) is not None:
                    self._confirmed = max(self._confirmed, waiting - 1)
            raise

    def _send(self, producer: Producer) -> None:
        """Send the entries behind what is confirmed, and wait for their receipts."""
        try:
            for sequence, entry in self._staged.read(self._confirmed):
                producer.send(outgoing(producer.name, sequence, entry, self._now))
            producer.flush()
        except PulsarLakeError:
            if producer.refused:
                self._refusals.add()
            raise

    def _take_repeated(self, producer: Producer) -> None:
        """Raises PulsarLakeError where something was there that nobody can have sent."""
        if producer.repeated and not self._began:
            raise PulsarLakeError(
                f"the broker took new messages for {self._partition} for repeated ones, and "
                "dropped them",
                hint=f"does anybody else send as {producer.name}?",
            )
        self._repeated += producer.repeated

    def _arrived(self) -> Arrived:
        return Arrived(self._clients, self._partition, self._task.producer, self._entries)

    def _found(self, arrived: Arrived) -> int:
        """The last id that has arrived of a name that the broker has forgotten; -1: nothing has."""
        arrived.require_visible()
        shown = arrived.highest
        if shown is None:
            if arrived.maybe_deleted() and not is_remembered(
                self._clients, self._task.decided, self._task.created
            ):
                raise PulsarLakeError(
                    f"nobody can tell what of {self._task.producer} has arrived in "
                    f"{self._partition}: its broker has forgotten, and messages may have been "
                    "deleted since",
                    hint=_SENT_AGAIN,
                )
            return -1
        # Of an encrypted batch only the first id is shown.
        with closing(self._staged.read(shown - 1)) as behind:
            for sequence, entry in behind:
                return sequence + entry.ids - 1 if sequence <= shown else shown
        return shown

    def _verify(self) -> None:
        """Raises PulsarLakeError unless each of ``repeated`` is there, and none twice.

        Of an entry one id at least is shown: of an encrypted one, and of a message of chunks, no
        more.
        """
        entries, arrived = self._entries, self._arrived()
        doubtful = np.zeros(entries.ids, bool)
        for low, high in self._repeated:
            doubtful[low - entries.first : high - entries.first + 1] = True
        begin = entries.first
        deleted: bool | None = None
        for sequence, entry in self._staged.read(entries.first - 1):
            begin = sequence if entry.chunk <= 1 else begin
            if entry.chunk and not entry.messages:
                continue
            last = sequence + entry.ids - 1
            times = arrived.times(begin, last)
            if times == 1:
                continue
            message = f"message {sequence} of {self._task.producer}"
            if times == 0:
                if not doubtful[begin - entries.first : last - entries.first + 1].any():
                    continue  # it has a receipt of its own
                if arrived.highest is None or last > arrived.highest:
                    arrived.require_visible()
                if arrived.incomplete or arrived.lowest is None or last < arrived.lowest:
                    if deleted is None:
                        deleted = arrived.maybe_deleted()
                        if deleted and self._refusals.are_known():
                            raise PulsarLakeError(
                                f"nobody can tell whether {message} was in {self._partition}: its "
                                "broker has refused an entry, and messages may have been deleted "
                                "since",
                                hint=_SENT_AGAIN,
                            )
                    if deleted:  # and the broker has had it
                        continue
            what = "is missing" if times == 0 else f"is there {times} times"
            raise PulsarLakeError(
                f"{message} {what} in {self._partition}",
                hint="it was refused, or deduplication was off, while it was sent before: "
                f"see {entries.ids} messages from {entries.first} on",
            )


def _require_known(producer: Producer, entries: PartitionEntries) -> None:
    """Raises PulsarLakeError where the name has sent what no manifest knows."""
    if entries.before < producer.last_sequence < entries.first:
        raise PulsarLakeError(
            f"{producer.partition} has messages of {producer.name} that no manifest knows",
            hint="was the storage set back to an older state? With the option delivery = "
            "at-least-once the rows are sent, some of them perhaps again",
        )


def require_same_schema(producer: Producer, schema: ShownSchema) -> None:
    """Raises ConfigurationError where the topic has the schema under another version than when
    its rows were encoded: what readers decode by it is not what was written."""
    if schema.message is not None and schema.version not in (None, producer.schema_version):
        raise ConfigurationError(
            f"the schemas of {producer.partition} are not those for which its rows were encoded",
            hint="was the topic deleted and made again meanwhile? Run the write again; a stream or "
            "a txnAppId goes on with the option delivery = at-least-once",
        )


def outgoing(
    name: str, sequence: int, entry: EncodedEntry, now: Callable[[], float]
) -> OutgoingEntry:
    """The entry with what is only known when it is sent."""
    highest = sequence + entry.ids - 1
    payload, more = stored_payload(entry, sequence)
    added = MessageMetadata(
        producer_name=name,
        sequence_id=sequence,
        publish_time=int(now() * 1000),
        highest_sequence_id=highest if entry.ids > 1 else None,
        uuid=f"{name}-{sequence - entry.chunk + 1}" if entry.chunk else None,
    )
    metadata = added.SerializeToString() + entry.metadata + more
    return OutgoingEntry(sequence, highest, entry.ids, metadata, payload)
