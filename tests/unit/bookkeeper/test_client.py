"""``BookKeeperClient`` over sockets: what only sockets can get wrong."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from reader.bookkeeper import BookieAccess, BookKeeperClient, connection
from reader.bookkeeper.bookie_connections import BookieConnections
from reader.bookkeeper.connection import EntryConnection, RangeConnection
from reader.bookkeeper.reads.read_messages import EntryRead, RangeRead, ReadKind
from reader.errors import ConfigurationError, CorruptError, UnavailableError
from reader.model import LedgerMetadata
from testbed.security import Authority
from tests.unit.bookkeeper import fake_bookie
from tests.unit.bookkeeper.stored_ledgers import (
    entries_of,
    expected,
    ledger_of,
    socket_scripts,
    stored_by,
)

COUNT = 300
WHOLE = ledger_of(7, COUNT, ("0", "1"))
STRIPED = ledger_of(7, COUNT)
SOLE = ledger_of(7, COUNT, ("0",), 1)
LEDGERS = pytest.mark.parametrize("ledger", [WHOLE, STRIPED], ids=["ranges", "entries"])


@contextmanager
def bookies(
    ledger: LedgerMetadata, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[list[fake_bookie.FakeBookie], dict[str, str]]]:
    """The bookies that store a ledger, and their addresses."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(fake_bookie.FakeBookie(*socket_scripts(store), tls))
            for store in stored_by([ledger])[: ledger.ensemble_size]
        ]
        yield made, {str(number): bookie.address for number, bookie in enumerate(made)}


@contextmanager
def faulty(
    ledger: LedgerMetadata, script: fake_bookie.Script, batch: fake_bookie.BatchScript
) -> Iterator[dict[str, str]]:
    """The addresses of bookies of which the first answers otherwise."""
    with bookies(ledger) as (_, addresses), fake_bookie.FakeBookie(script, batch) as first:
        yield {**addresses, "0": first.address}


def read(ledger: LedgerMetadata, addresses: dict[str, str], timeout: float = 30.0) -> None:
    with BookKeeperClient(addresses=addresses, timeout=timeout) as client:
        blocks = client.read(ledger, 0, COUNT - 1, block_bytes=2000)
        assert entries_of(blocks) == expected((ledger, 0, COUNT - 1))


# --- answers that are no answers ---

GARBLED: dict[str, tuple[bytes, bytes]] = {
    "garbage": (b"\x00\x00\x00\x08" + b"\xff" * 8, b"\x00\x00\x00\x40" + b"\xff" * 64),
    "too long": (b"\x7f\xff\xff\xff" + b"x" * 100, b"\x7f\xff\xff\xff" + b"x" * 100),
    "too short": (b"\x00\x00\x00\x00", b"\x00\x00\x00\x08" + b"x" * 100),
}


@LEDGERS
@pytest.mark.parametrize("kind", GARBLED)
def test_a_bookie_that_does_not_keep_to_its_protocol_is_left(
    ledger: LedgerMetadata, kind: str
) -> None:
    one, several = GARBLED[kind]
    with faulty(ledger, lambda *_: one, lambda *_: several) as addresses:
        read(ledger, addresses)


@LEDGERS
@pytest.mark.parametrize("size", [0, 10, 200])
def test_a_connection_that_ends_within_an_answer(ledger: LedgerMetadata, size: int) -> None:
    good, good_range = socket_scripts(stored_by([ledger])[0])

    def one(request: int, number: int, entry: int) -> Iterator[bytes]:
        yield (good(request, number, entry) or b"")[:size]
        raise ConnectionError

    def several(request: int, number: int, first: int, entries: int, most: int) -> Iterator[bytes]:
        yield (good_range(request, number, first, entries, most) or b"")[:size]
        raise ConnectionError

    with faulty(ledger, one, several) as addresses:  # type: ignore[arg-type]
        read(ledger, addresses)


@LEDGERS
def test_a_bookie_that_is_down(ledger: LedgerMetadata) -> None:
    with bookies(ledger) as (made, addresses):
        made[0].close()
        read(ledger, addresses)


def test_a_bookie_that_answers_nothing_is_silent_after_the_timeout() -> None:
    with fake_bookie.FakeBookie(lambda *_: None, lambda *_: None) as bookie:
        with pytest.raises(UnavailableError, match=r"bookie 0 is silent for 0\.2 s"):
            read(SOLE, {"0": bookie.address}, timeout=0.2)


def test_a_bookie_without_batch_reads_is_asked_for_entries() -> None:
    with fake_bookie.FakeBookie(socket_scripts(stored_by([SOLE])[0])[0]) as bookie:
        read(SOLE, {"0": bookie.address})
        assert (len(bookie.batches), len(bookie.asked)) == (1, COUNT)


# --- answers in parts ---


@pytest.mark.parametrize("at", [1, 4, 10, 35, 36, 37, 60, 190])
def test_answers_arrive_in_parts(at: int) -> None:
    body = b"x" * 200
    single = fake_bookie.answer(5, 0, 7, 3, body) * 2
    batch = fake_bookie.batch_answer(5, 0, 7, 3, [body, body]) * 2
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()
        with closing(EntryConnection(host, port, 5.0, BookieAccess())) as entries:
            peer, _ = listening.accept()
            entries.request([EntryRead(7, np.array([3]), np.array([5]))])
            peer.sendall(single[:at])
            assert entries.receive().table.shape[1] == 0
            peer.sendall(single[at:])
            answers = entries.receive()
            assert [table[:2].tolist() for table in answers.table.T] == [[5, 0], [5, 0]]
            for _, _, begin, size in answers.table.T.tolist():
                assert answers.buffer[begin : begin + size].tobytes() == body
            peer.close()
        with closing(RangeConnection(host, port, 5.0, BookieAccess())) as ranges:
            peer, _ = listening.accept()
            ranges.request([RangeRead(5, 7, 3, 2, 1000)])
            peer.sendall(batch[:at])
            assert ranges.receive() == []
            peer.sendall(batch[at:])
            found = ranges.receive()
            while len(found) < 2:
                found += ranges.receive()
            assert all(len(one.content) == 408 and one.header.request == 5 for one in found)
            peer.close()


@pytest.mark.parametrize("quorum", [2, 3])
@pytest.mark.parametrize("tls", [False, True])
def test_a_bookie_that_stalls_within_a_frame_or_a_record_of_tls(
    quorum: int, tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is waited for, what the others have sent is read."""
    server = None
    if tls:
        authority = Authority(tmp_path)
        server = authority.sign("bookie").server_context()
        trusting = ssl.create_default_context(cafile=authority.certificate)
        opened = partial(trusting.wrap_socket, server_hostname="127.0.0.1")
        monkeypatch.setattr(connection, "open_session", lambda plain, *_: opened(plain))
    ledger = ledger_of(7, 3000, quorum=quorum)
    with bookies(ledger, server) as (_, addresses), ExitStack() as stack:
        addresses["0"] = stack.enter_context(fake_bookie.Stalling(addresses["0"], 5000)).address
        client = stack.enter_context(BookKeeperClient(addresses=addresses, timeout=240.0))
        blocks = client.read(ledger, 0, 2999, block_bytes=60_000)
        assert entries_of(blocks) == expected((ledger, 0, 2999))
        assert all(map(client.health.is_available, addresses)), "late is not failed"


# --- connections that are kept ---


@pytest.mark.parametrize("ledger", [SOLE, ledger_of(7, COUNT, ("0", "1"), 1)])
def test_the_client_is_usable_after_a_read_that_was_given_up(ledger: LedgerMetadata) -> None:
    with bookies(ledger) as (_, addresses), BookKeeperClient(addresses=addresses) as client:
        blocks = client.read(ledger, 0, COUNT - 1, block_bytes=500)
        next(blocks)
        blocks.close()
        assert entries_of(client.read(ledger, 3, 20)) == expected((ledger, 3, 20))


@LEDGERS
def test_a_kept_connection_that_has_ended_is_opened_anew(ledger: LedgerMetadata) -> None:
    with bookies(ledger) as (made, addresses):
        with BookKeeperClient(addresses=addresses, timeout=30.0) as client:
            for _ in range(2):
                blocks = client.read(ledger, 0, COUNT - 1, block_bytes=2000)
                assert entries_of(blocks) == expected((ledger, 0, COUNT - 1))
                client.resume()
                made[0].hang_up()
            assert made[0].connections == 2
            assert client.health.is_available("0")


def test_a_kept_bookie_that_has_gone_is_a_failure() -> None:
    with bookies(SOLE) as (made, addresses), BookKeeperClient(addresses=addresses) as client:
        assert len(list(client.read(SOLE, 0, 0))) == 1
        made[0].hang_up()
        made[0].close()
        client.resume()
        with pytest.raises(UnavailableError, match="no connection to bookie"):
            list(client.read(SOLE, 0, 0))


def test_what_a_connection_knows_of_its_end() -> None:
    for script, rejects in ((None, True), (lambda *_: b"\x00\x00\x00\x40" + b"\xff" * 64, False)):
        with fake_bookie.FakeBookie(lambda *_: None, script) as bookie:
            with BookieConnections({"0": bookie.address}, 5.0) as connections:
                opened = connections.connect("0", ReadKind.RANGE)
                assert connections.connect("0", ReadKind.RANGE) is opened
                opened.request([RangeRead(5, 7, 3, 2, 1000)])
                with pytest.raises((UnavailableError, CorruptError)):
                    opened.receive()
                assert connections.rejects_ranges("0") is rejects
                assert not connections.is_kept("0")
                connections.disconnect("0")
                assert opened.fileno() == -1
                assert not connections.rejects_ranges("0")


def test_connections_are_kept_for_the_same_identity() -> None:
    with bookies(SOLE) as (_, addresses), BookieConnections(addresses, 5.0) as connections:
        first = connections.connect("0", ReadKind.ENTRY)
        connections.resume(BookieAccess())
        assert connections.connect("0", ReadKind.ENTRY) is first
        assert connections.is_kept("0")
        first.request([EntryRead(7, np.array([3]), np.array([5]))])
        while not first.has_answered:
            first.receive()
        assert not connections.is_kept("0"), "it has given an answer"
        connections.resume(BookieAccess(user="other"))
        assert first.fileno() == -1


def test_ids_that_are_no_address_need_the_map() -> None:
    ledger = ledger_of(7, 10, ("bookie-a",), 1)
    script, batch = socket_scripts(stored_by([ledger_of(7, 10, ("0",), 1)])[0])
    with fake_bookie.FakeBookie(script, batch) as one:
        with BookKeeperClient(addresses={"bookie-a": one.address}) as client:
            assert entries_of(client.read(ledger, 0, 9)) == expected((ledger, 0, 9))
    for shape in (ledger, ledger_of(7, 10, ("bookie-a", "bookie-b"), 1)):
        with BookKeeperClient() as client:
            with pytest.raises(ConfigurationError, match=r"'bookie-[ab]' is not an address"):
                list(client.read(shape, 0, 9))
