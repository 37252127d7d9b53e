"""In place of the reader through a broker: messages of the simulated ledgers, as a client has them.

It hides what a broker hides. Its decoder is the product's, as Pulsar's own client is not to be had
here; like that one, it knows the chunks from where its reader begins, and gives nothing of a chunk
that fits no message (docs/limitations.md: chunked messages through the broker).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from reader.clients import Clients
from reader.decode import EntryDecoder, Messages
from reader.errors import NotFoundError, UnavailableError, UnsupportedError
from reader.model import EntryBlock, Partition, Position
from reader.model.columns import STRAY_ERROR
from reader.sources import Lookback
from reader.sources.bookkeeper import BookKeeperEntries
from testbed.simulation import ClusterState, Effects, FailureError

__all__ = ["SimulatedBroker"]


class _CachedEntries(BookKeeperEntries):
    """What the broker reads itself, without the bookies' failures."""

    def __init__(self, clients: Clients, partition: Partition, state: ClusterState) -> None:
        super().__init__(clients, partition)
        self._state = state

    def read(self, ledger_id: int, first: int, last: int) -> Any:
        found = self._state.ledger(ledger_id)
        if found is None:
            raise NotFoundError(f"no such ledger: {ledger_id}")
        if first <= last:
            numbers = range(first, last + 1)
            yield EntryBlock.of(ledger_id, {n: found.entries[n].data for n in numbers})


class SimulatedBroker:
    """For one process. ``read`` as ``BrokerReader.read``."""

    def __init__(self, clients: Clients, state: ClusterState, effects: Effects) -> None:
        self._clients = clients
        self._state = state
        self._effects = effects

    def read(
        self,
        partition: Partition,
        first: Position,
        last: Position,
        *,
        start: Position | None = None,
        columns: Collection[str],
        keys: bool = False,
        publish_range: tuple[int | None, int | None] = (None, None),
        strict: bool = False,
        rescue: bool = False,
    ) -> Iterator[tuple[int, Messages]]:
        entries = _CachedEntries(self._clients, partition, self._state)
        lookback = Lookback(entries, partition, end=first, first=start or first)
        decoder = EntryDecoder(
            partition, columns=tuple(columns), payload=True, context=lookback, keys=keys
        )
        for number in range(first.entry, last.entry + 1):
            try:
                with self._effects.effect(f"broker {first.ledger}:{number}"):
                    blocks = list(entries.read(first.ledger, number, number))
            except FailureError as error:
                raise UnavailableError("the simulated broker is silent") from error
            for block in blocks:
                for messages in decoder.decode(block):
                    if any(why.startswith(STRAY_ERROR) for _, why in messages.rescued.values()):
                        raise UnsupportedError("a chunk without the ones before it: no message")
                    yield number, messages
