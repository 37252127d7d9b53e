"""In place of the client of a broker: entries of the simulated ledgers, as a consumer gets them."""

from collections.abc import Generator, Mapping, Sequence

from reader.errors import NotFoundError, UnavailableError
from reader.model import EntryBlock, Partition, Position
from testbed.simulation import ClusterState, Effects, FailureError, ManagedLedger


class SimulatedBroker:
    """For one process. ``read`` as ``BrokerClient.read``; ``counts``: entries that were read.

    It leaves out markers, what was aborted and what an open transaction hides, and gives nothing
    while it recovers the topic's transactions.
    """

    def __init__(self, state: ClusterState, effects: Effects, counts: dict[str, int]) -> None:
        self._state = state
        self._effects = effects
        self._counts = counts

    def read(
        self, partition: Partition, ledger_id: int, first: int, last: int, *, block_bytes: int = 0
    ) -> Generator[EntryBlock]:
        """Blocks of a few entries: a read has several steps."""
        for low in range(first, last + 1, 3):
            try:
                with self._effects.effect(f"broker {ledger_id}:{low}", "broker"):
                    given = self._given(partition, ledger_id, range(low, min(low + 3, last + 1)))
            except FailureError as error:
                raise UnavailableError("the simulated broker is silent") from error
            if given:
                yield EntryBlock.of(ledger_id, given)

    def last_positions(self, partitions: Sequence[Partition]) -> dict[Partition, Position]:
        """As ``BrokerClient.last_positions``."""
        found = {}
        try:
            with self._effects.effect("broker positions", "broker"):
                pass
        except FailureError as error:
            raise UnavailableError("the simulated broker is silent") from error
        for one in partitions:
            ml = self._state.partition(one.full_name)  # to consume it makes it again
            if ml is None:
                raise NotFoundError(f"topic {one} does not exist")
            if self._state.clock.now_ms < ml.recovering_ms:
                raise UnavailableError("the simulated broker recovers its transactions")
            found[one] = Position(*ml.max_read)
        return found

    def _given(self, partition: Partition, ledger_id: int, numbers: range) -> Mapping[int, bytes]:
        ml = self._managed_ledger(partition)
        ledger = ml.get(ledger_id)
        if ledger is None or self._state.clock.now_ms < ml.recovering_ms:
            return {}
        found = {}
        for number in numbers[: len(ledger.entries) - numbers.start]:
            entry = ledger.entries[number]
            hidden = not entry.values or entry.transaction in ml.aborted
            if not hidden and (ledger_id, number) <= ml.max_read:
                found[number] = entry.data
        self._counts["entries"] = self._counts.get("entries", 0) + len(numbers)
        return found

    def _managed_ledger(self, partition: Partition) -> ManagedLedger:
        for topic in self._state.topics.values():
            for ml in topic.parts.values():
                if ml.name == partition.full_name:
                    return ml
        raise NotFoundError(f"topic {partition} does not exist")
