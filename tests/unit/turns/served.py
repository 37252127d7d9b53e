"""The simulated Pulsar, served to the product's own clients.

The admin REST answers in the thread that asks. A bookie on a socket has the ledgers.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from offloader.convert import Conversion, ConversionJobs
from offloader.convert.conversion import ConversionOutcome
from offloader.convert.pack_task import run_packs
from reader.clients import Clients
from reader.closing import Closing
from reader.config import PulsarConfig
from reader.pulsar.admin import AdminClient
from testbed.simulation import AdminRest, Clock, ClusterState, Effects, ManagedLedger
from tests.simulation.product.clients import SimulatedHttp
from tests.unit.bookkeeper.fake_bookie import FakeBookie, answer, batch_answer, stored


class ServedPulsar(Closing):
    """A cluster with one bookie.

    ``state``: its topics; ``rest``: its admin REST; ``read``: the ledger of each bookie's answer;
    ``silent``: ledgers that the bookie cannot read; ``missing``: entries that it does not have.
    """

    def __init__(self, now_ms: int, rest: type[AdminRest] = AdminRest) -> None:
        self.clock = Clock(now_ms)
        self.state = ClusterState(self.clock, broker_times=False, transactions=False)
        self.rest = rest(self.state)
        self.read: list[int] = []
        self.silent: set[int] = set()
        self.missing: set[tuple[int, int]] = set()
        self.bookie = FakeBookie(self._one, self._many)
        self.state.bookie = self.bookie.address

    def close(self) -> None:
        self.bookie.close()

    def admin_client(self, config: PulsarConfig) -> AdminClient:
        return AdminClient(
            config,
            http=SimulatedHttp(config, self.rest, Effects()),
            clock=lambda: self.clock.now_ms / 1000,
            sleep=self.clock.sleep,
        )

    def store(self, ml: ManagedLedger, *entries: bytes) -> None:
        """Write entries to the open ledger."""
        for one in entries:
            self.state.keep(ml, one)

    def _entries(self, ledger: int) -> list[bytes] | None:
        found = self.state.ledger(ledger)
        if found is None or found.offload is not None:
            return None
        return [one.data for one in found.entries]

    def _one(self, request: int, ledger: int, number: int) -> bytes:
        entries = self._entries(ledger)
        if ledger in self.silent:
            return answer(request, 101, ledger, number)
        if entries is None or number >= len(entries) or (ledger, number) in self.missing:
            return answer(request, 402 if entries is None else 403, ledger, number)
        self.read.append(ledger)
        return answer(request, 0, ledger, number, stored(ledger, number, entries[number]))

    def _many(self, request: int, ledger: int, first: int, count: int, size: int) -> bytes:
        entries = self._entries(ledger)
        if ledger in self.silent:
            return batch_answer(request, 101, ledger, first)
        if entries is None or first >= len(entries) or (ledger, first) in self.missing:
            return batch_answer(request, 402 if entries is None else 403, ledger, first)
        self.read.append(ledger)
        found: list[bytes] = []
        for number in range(first, min(first + count, len(entries))):
            if (ledger, number) in self.missing:
                break
            one = stored(ledger, number, entries[number])
            if found and sum(map(len, found)) + len(one) > size:
                break
            found.append(one)
        return batch_answer(request, 0, ledger, first, found)


def in_thread_jobs(clients: Clients) -> ConversionJobs[Any]:
    """Return jobs that convert packs in the thread of the turn, without Spark."""
    return ConversionJobs(lambda: None, partial(_convert, clients))


def _convert(
    clients: Clients, context: None, conversions: Sequence[Conversion], *, pool: str
) -> list[ConversionOutcome]:
    outcomes: list[ConversionOutcome] = []
    for conversion in conversions:
        conversion.begun()
        packs = [(conversion.spec, pack) for pack in conversion.packs]
        # On a busy machine a turn would give up packs, and commit nothing. Tests of slow packs have
        # a negative patience.
        patience = 100 * conversion.patience
        outcomes.append(tuple(run_packs(packs, patience=patience, clients=clients)))
    return outcomes
