"""Entries sent as they are made: at least once."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress

from reader.clients import Clients
from reader.closing import Closing
from reader.encode import EncodedEntry
from reader.errors import UnavailableError
from reader.model import Partition
from reader.pulsar.binary import Producer, Publisher
from reader.sink.sending import outgoing, require_same_schema
from reader.sink.staged_entries import ShownSchema
from reader.sink.target import Target

_FRUITLESS = 5
_PAUSE = 0.5


class DirectSender(Closing):
    """Sends what one task makes, and keeps what is not confirmed to send it again.

    Memory: the send window of each partition.
    """

    def __init__(
        self,
        clients: Clients,
        *,
        encrypted: bool,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._encrypted = encrypted
        self._now = now
        self._sleep = sleep
        self._stack = ExitStack()
        self._publisher: Publisher = self._stack.enter_context(clients.publisher())
        self._lines: dict[Partition, _Line] = {}

    def put(self, target: Target, partition: Partition, entry: EncodedEntry) -> None:
        """As ``EntrySink`` has it."""
        line = self._lines.get(partition)
        if line is None:
            line = self._lines[partition] = _Line(partition, target.shown)
        self._persistently(line, lambda: self._send(line, entry))

    def finish(self) -> None:
        """All of it is stored."""
        for line in self._lines.values():
            self._persistently(line, lambda line=line: self._flush(line))  # type: ignore[misc]

    def close(self) -> None:
        for line in self._lines.values():
            if line.producer is not None:
                with suppress(UnavailableError):  # the broker gives the name up by itself
                    line.producer.close()
        self._lines.clear()
        self._stack.close()

    def _send(self, line: _Line, entry: EncodedEntry) -> None:
        producer = self._open(line)
        if entry is not line.newest:
            line.newest = entry
            line.unconfirmed.append((line.sequence, entry))
            line.sequence += entry.ids
            line.handed = line.unconfirmed[-1][0]
            producer.send(outgoing(line.name, *line.unconfirmed[-1], self._now))
        line.confirm()

    def _flush(self, line: _Line) -> None:
        self._open(line).flush()
        line.confirm()

    def _open(self, line: _Line) -> Producer:
        if line.producer is None or line.producer.connection.broken or line.failed:
            if line.producer is not None and line.producer.refused:
                # Behind it others may be stored: it would be dropped as a repeated one.
                line.name = _new_name()
            line.producer = self._publisher.producer(
                line.partition,
                name=line.name,
                schema=line.schema.message,
                encrypted=self._encrypted,
            )
            require_same_schema(line.producer, line.schema)
            line.failed = False
            line.handed = -1
            for sequence, entry in line.unconfirmed:
                line.handed = sequence
                line.producer.send(outgoing(line.name, sequence, entry, self._now))
        return line.producer

    def _persistently(self, line: _Line, act: Callable[[], None]) -> None:
        fruitless = 0
        while True:
            before = len(line.unconfirmed)
            try:
                return act()
            except UnavailableError:
                line.confirm()
                line.failed = True
                fruitless = 0 if len(line.unconfirmed) < before else fruitless + 1
                if fruitless >= _FRUITLESS:
                    raise
            self._sleep(_PAUSE * 2**fruitless)


def _new_name() -> str:
    return f"pulsar-lake-{uuid.uuid4().hex}"


class _Line:
    """One partition: its producer, and what that has not confirmed."""

    def __init__(self, partition: Partition, schema: ShownSchema) -> None:
        self.partition = partition
        self.schema = schema
        self.name = _new_name()
        self.producer: Producer | None = None
        self.failed = False
        self.handed = -1  # the last id that this producer was given
        self.sequence = 0
        self.newest: EncodedEntry | None = None
        self.unconfirmed: deque[tuple[int, EncodedEntry]] = deque()

    def confirm(self) -> None:
        """Forget what the producer's broker has stored since."""
        if self.producer is None:
            return
        waiting = self.producer.first_waiting
        stored = self.handed if waiting is None else waiting - 1
        while self.unconfirmed and self.unconfirmed[0][0] <= stored:
            self.unconfirmed.popleft()
