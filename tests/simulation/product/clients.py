"""The product's clients of a simulated Pulsar: the real ones above the last step to a socket."""

import copy
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from reader.clients import Clients
from reader.config import PulsarConfig, ReadConfig
from reader.errors import CorruptError, NotFoundError, UnavailableError
from reader.model import EntryBlock, LedgerMetadata
from reader.pulsar.admin import AdminClient
from reader.pulsar.http import AdminHttp
from reader.storage import Storage
from testbed.simulation import AdminRest, ClusterState, Effects, FailureError, Producers, bookie_of
from tests.simulation.product.broker import SimulatedBroker
from tests.simulation.product.publisher import SimulatedPublisher


class SimulatedHttp(AdminHttp):
    """Requests that no connection carries."""

    def __init__(self, config: PulsarConfig, rest: AdminRest, effects: Effects) -> None:
        super().__init__(config)
        self.attach(rest, effects)

    def attach(self, rest: AdminRest, effects: Effects) -> None:
        """Ask this Pulsar from now on: connections cost more to make than a history has time."""
        self._rest = rest
        self._effects = effects

    def request(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        try:
            with self._effects.effect(f"{method} {path}", "admin"):
                status, body = self._rest.answer(method, path, kwargs.get("json"))
        except FailureError as error:
            raise UnavailableError("no answer from the simulated admin") from error
        return _Answer(status, None, body) if method == "HEAD" else _Answer(status, body)


class _Answer(httpx.Response):
    """JSON that was never bytes: what the product asks of an answer, in a tenth of the time."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status
        self.headers = httpx.Headers(headers) if headers else _NO_HEADERS
        self._body = body

    @property
    def content(self) -> bytes:
        return b"" if self._body is None else b"json"

    @property
    def text(self) -> str:
        return str(self._body)

    def json(self, **_: Any) -> Any:
        return copy.deepcopy(self._body)


_NO_HEADERS = httpx.Headers()


class SimulatedBookies:
    """In place of a ``BookKeeperClient``; ``entries``: how many were read."""

    def __init__(self, state: ClusterState, effects: Effects, counts: dict[str, int]) -> None:
        self._state = state
        self._effects = effects
        self._counts = counts

    def read(
        self, ledger: LedgerMetadata, first: int, last: int, *, block_bytes: int = 0
    ) -> Generator[EntryBlock]:
        """Blocks of a few entries: a read has several steps."""
        for low in range(first, last + 1, 3):
            try:
                with self._effects.effect(
                    f"read {ledger.ledger_id}:{low}", bookie_of(ledger.ledger_id)
                ):
                    block = self._block(ledger.ledger_id, low, min(low + 2, last))
            except FailureError as error:
                raise UnavailableError("the simulated bookies are silent") from error
            yield block

    def read_ranges(
        self, ranges: Iterable[tuple[LedgerMetadata, int, int]], *, block_bytes: int = 0
    ) -> Generator[EntryBlock]:
        for ledger, first, last in ranges:
            yield from self.read(ledger, first, last)

    def _block(self, ledger_id: int, first: int, last: int) -> EntryBlock:
        if self._state.bookies_down:
            raise UnavailableError("the simulated bookies are down")
        found = self._state.ledger(ledger_id)
        if found is None:
            raise NotFoundError(f"no such ledger: {ledger_id}")
        if last >= len(found.entries):
            raise CorruptError(f"no such entry: {ledger_id}:{last}")
        self._counts["entries"] = self._counts.get("entries", 0) + last - first + 1
        return EntryBlock.of(ledger_id, {n: found.entries[n].data for n in range(first, last + 1)})


class SimulatedClients(Clients):
    """One process's. ``producers``: of the cluster, if anything is written to it."""

    producers: Producers | None = None

    def __init__(
        self,
        settings: ReadConfig,
        admin: AdminClient,
        storage: Storage,
        state: ClusterState,
        effects: Effects,
        counts: dict[str, int],
    ) -> None:
        super().__init__(settings, admin=admin, storage=storage)
        self.state = state
        self._simulated = SimulatedBookies(state, effects, counts)
        self._effects = effects
        self._broker = SimulatedBroker(state, effects, counts)
        self._publisher: SimulatedPublisher | None = None

    @contextmanager
    def bookies(self) -> Iterator[Any]:
        yield self._simulated

    @contextmanager
    def broker(self) -> Iterator[Any]:
        yield self._broker

    @contextmanager
    def publisher(self) -> Iterator[Any]:
        if self._publisher is None:
            assert self.producers is not None
            self._publisher = SimulatedPublisher(
                self.settings.pulsar, self.state, self.producers, self._effects
            )
        self._publisher.resume()
        try:
            yield self._publisher
        except Exception:
            self._publisher.close()
            raise

    def die(self, *, silent: bool, frames: int) -> None:
        """The process dies, as ``SimulatedConnections.die`` has it."""
        if self._publisher is not None:
            self._publisher.connections.die(silent=silent, frames=frames)
