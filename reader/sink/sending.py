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
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from reader.clients import Clients
from reader.encode import EncodedEntry, stored_payload
from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from reader.model import Partition
from reader.pulsar.binary import OutgoingEntry, Producer
from reader.sink.arrived import Arrived
from reader.sink.deduplication import Refusals, is_remembered
from reader.sink.manifest import PartitionEntries
from reader.sink.staged_entries import ShownSchema
from reader.sink.staging import StagedEntries
from reader.wire.pulsar_pb2 import MessageMetadata

_BUSY_SECONDS = 120.0
"""How long the name may be another's: a broker that misses a client asks it twice within 60 s."""
_FRUITLESS = 5
"""Attempts without an entry more that the broker stores, before it is given up."""
_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Sent:
    """``ids``: sequence ids that are in the partition now; ``repeated``: how many entries of them
    were there already."""

    partition: str
    ids: int
    repeated: int


def send_partition(
    clients: Clients,
    name: str,
    entries: PartitionEntries,
    inline: bytes,
    *,
    decided: str,
    created: int,
    encrypted: bool,
    fresh: bool,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Sent:
    """Send them under this producer name. ``fresh``: nobody has tried to before.

    ``decided``: path of the manifest. ``created``: when that was, by the driver's clock, in ms.
    ``now``: s since the epoch, for publish times.

    Raises UnavailableError where the brokers do not take them: then it may be run again.
    """
    partition = Partition.parse(entries.partition)
    staged = StagedEntries(clients, entries, inline)
    confirmed = entries.first - 1
    fruitless, began, looked = 0, not fresh, False
    tried = not fresh  # whether anything may have been sent under this name and these ids
    repeated: list[tuple[int, int]] = []
    refusals = Refusals(clients, decided)

    def arrived() -> Arrived:
        return Arrived(clients, partition, name, entries)

    def remembered() -> bool:
        return is_remembered(clients, decided, created)

    while True:
        producer: Producer | None = None
        before = confirmed
        try:
            refusals.note()
            with clients.publisher() as publisher:
                producer = publisher.producer(
                    partition,
                    name=name,
                    schema=entries.schema.message,
                    encrypted=encrypted,
                    seconds=_BUSY_SECONDS,
                )
                require_same_schema(producer, entries.schema)
                _require_known(producer, entries)
                # Looked at once: as long as the broker knows of nothing, nobody has sent since,
                # though it may take this connection for dead meanwhile.
                if tried and not (looked or _remembered(producer.last_sequence, entries)):
                    highest = _found(arrived(), staged, name, remembered)
                    looked = True
                    if highest > confirmed:
                        repeated.append((confirmed + 1, highest))
                        confirmed = highest
                tried = True
                _send(producer, staged, confirmed, now, refusals)
                _unexpected(producer, began, partition)
                repeated += producer.repeated
                producer.close()
                break
        except NotFoundError as error:
            error.hint = (
                "was the topic deleted, or made again with fewer partitions, since this was "
                "decided? A stream or a txnAppId goes on with the option delivery = at-least-once"
            )
            raise
        except UnavailableError:
            if producer is not None:
                _unexpected(producer, began, partition)
                repeated += producer.repeated
                if (waiting := producer.first_waiting) is not None:
                    confirmed = max(confirmed, waiting - 1)
            began = True
            fruitless = 0 if confirmed > before else fruitless + 1
            if fruitless >= _FRUITLESS:
                raise
            sleep(_PAUSE * 2**fruitless)
    if repeated:
        _verify(arrived(), repeated, partition, name, entries, staged, refusals)
    return Sent(entries.partition, entries.ids, len(repeated))


def _send(
    producer: Producer,
    staged: StagedEntries,
    confirmed: int,
    now: Callable[[], float],
    refusals: Refusals,
) -> None:
    """Send the entries behind an id, and wait for their receipts."""
    try:
        for sequence, entry in staged.read(confirmed):
            producer.send(outgoing(producer.name, sequence, entry, now))
        producer.flush()
    except PulsarLakeError:
        if producer.refused:
            refusals.add()
        raise


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


def _remembered(last_sequence: int, entries: PartitionEntries) -> bool:
    """Whether the broker knows the name, by what it says at connect."""
    return last_sequence >= max(entries.before, 0)


def _unexpected(producer: Producer, began: bool, partition: Partition) -> None:
    """Raises PulsarLakeError where something was there that nobody can have sent."""
    if producer.repeated and not began:
        raise PulsarLakeError(
            f"the broker took new messages for {partition} for repeated ones, and dropped them",
            hint=f"does anybody else send as {producer.name}?",
        )


def _found(
    arrived: Arrived, staged: StagedEntries, name: str, remembered: Callable[[], bool]
) -> int:
    """The last id that has arrived of a name that the broker has forgotten; -1: nothing has."""
    arrived.require_visible()
    shown = arrived.highest
    if shown is None:
        if arrived.maybe_deleted() and not remembered():
            raise PulsarLakeError(
                f"nobody can tell what of {name} has arrived in {arrived.partition}: its broker "
                "has forgotten, and messages may have been deleted since",
                hint="with the option delivery = at-least-once all of it is sent, perhaps again",
            )
        return -1
    # Of an encrypted batch only the first id is shown.
    with closing(staged.read(shown - 1)) as behind:
        for sequence, entry in behind:
            return sequence + entry.ids - 1 if sequence <= shown else shown
    return shown


def _verify(
    arrived: Arrived,
    repeated: Sequence[tuple[int, int]],
    partition: Partition,
    name: str,
    entries: PartitionEntries,
    staged: StagedEntries,
    refusals: Refusals,
) -> None:
    """Raises PulsarLakeError unless each of ``repeated`` (ids from, to) is there, and none twice.

    Of an entry one id at least is shown: of an encrypted one, and of a message of chunks, no more.
    """
    doubtful = np.zeros(entries.ids, bool)
    for low, high in repeated:
        doubtful[low - entries.first : high - entries.first + 1] = True
    begin = entries.first
    deleted: bool | None = None
    for sequence, entry in staged.read(entries.first - 1):
        begin = sequence if entry.chunk <= 1 else begin
        if entry.chunk and not entry.messages:
            continue
        last = sequence + entry.ids - 1
        times = arrived.times(begin, last)
        if times == 1:
            continue
        if times == 0:
            if not doubtful[begin - entries.first : last - entries.first + 1].any():
                continue  # it has a receipt of its own
            if arrived.highest is None or last > arrived.highest:
                arrived.require_visible()
            if arrived.incomplete or arrived.lowest is None or last < arrived.lowest:
                if deleted is None:
                    deleted = arrived.maybe_deleted()
                    if deleted and refusals.are_known():
                        raise PulsarLakeError(
                            f"nobody can tell whether message {sequence} of {name} was in "
                            f"{partition}: its broker has refused an entry, and messages may have "
                            "been deleted since",
                            hint="with the option delivery = at-least-once all of it is sent, "
                            "perhaps again",
                        )
                if deleted:  # and the broker has had it
                    continue
        what = "is missing" if times == 0 else f"is there {times} times"
        raise PulsarLakeError(
            f"message {sequence} of {name} {what} in {partition}",
            hint="it was refused, or deduplication was off, while it was sent before: "
            f"see {entries.ids} messages from {entries.first} on",
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
