"""A stream's place as a durable subscription of each partition: for Pulsar's own tools.

It is moved behind what has been read, and nothing is read by it: where a stream goes on, its
checkpoint says. As any durable subscription it keeps Pulsar from trimming what lies behind it.
"""

import time
from collections.abc import Callable, Collection

from reader.clients import Clients
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.model import BEFORE_ALL, Partition, Position, Topic
from reader.stream.offsets import StreamOffset

_OURS = {"pulsar-lake.stream": "place"}
"""By this property a subscription says that a stream made it, and moves it."""
_SECONDS = 1.0
"""How rarely it is moved: a request of the admin REST for each partition."""


class ShownPlace:
    """For one thread at a time. ``warn`` is told, once, why a partition's cannot be moved.
    ``clock``: seconds."""

    def __init__(
        self,
        clients: Clients,
        subscription: str,
        *,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = clients.admin
        self._subscription = subscription
        self._warn = warn
        self._clock = clock
        self._moved_at = -_SECONDS
        self._shown: dict[Partition, Position] = {}
        self._told: dict[Partition, str] = {}

    def show(self, offset: StreamOffset, topics: Collection[Topic]) -> None:
        """Move it to an offset, unless it was moved a moment ago. ``topics``: those that there are;
        for another one Pulsar would make the topic. Raises ConfigurationError for a
        subscription that is somebody else's, and nothing that passes."""
        if self._clock() - self._moved_at < _SECONDS:
            return
        self._moved_at = self._clock()
        for partition, one in sorted(offset.partitions.items()):
            if partition.topic not in topics or one.at in (BEFORE_ALL, self._shown.get(partition)):
                continue
            try:
                self._move(partition, one.at)
            except ConfigurationError:
                raise
            except PulsarLakeError as error:
                self._tell(partition, str(error))
                if isinstance(error, UnavailableError):
                    break  # each of the others would wait as long

    def _tell(self, partition: Partition, error: str) -> None:
        if self._told.get(partition) != error:
            self._told[partition] = error
            self._warn(f"subscription {self._subscription} does not show the stream: {error}")

    def _move(self, partition: Partition, at: Position) -> None:
        if partition not in self._shown:
            self._claim(partition)
        next_entry = Position(at.ledger, at.entry + 1)
        if self._admin.move_hold(partition, self._subscription, next_entry):
            self._shown[partition] = at

    def _claim(self, partition: Partition) -> None:
        name = self._subscription
        made = self._admin.create_hold(partition, name, _OURS)
        if not made and not _OURS.items() <= self._admin.hold_properties(partition, name).items():
            raise ConfigurationError(
                f"subscription {name} of {partition} is there already, and not a stream's",
                hint="option subscription names one of its own, which is made by the stream",
            )
