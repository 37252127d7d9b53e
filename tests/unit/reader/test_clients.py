"""The clients of a process: opened once, closed once, never shared with a forked child."""

import gc
import os
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from reader.clients import Clients, close_process_clients, process_clients
from reader.config import PulsarConfig, ReadConfig
from reader.errors import ConfigurationError
from reader.model import LedgerMetadata, Topic
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from testbed.security import Authority
from tests.unit.bookkeeper.fake_bookie import FakeBookie, answer, stored

OK = 0


def settings(**storage: str) -> ReadConfig:
    return ReadConfig.load({"storage": storage})


@pytest.fixture(autouse=True)
def _none_left() -> Iterator[None]:
    close_process_clients()
    yield
    close_process_clients()


class ClosedOnce(AdminClient):
    """An admin client that counts how often it was closed."""

    def __init__(self) -> None:
        super().__init__(PulsarConfig())
        self.closed = 0

    def close(self) -> None:
        self.closed += 1
        super().close()


def test_each_is_opened_once(tmp_path: Path) -> None:
    with Clients(settings(uri=str(tmp_path))) as clients:
        assert clients.admin is clients.admin
        assert clients.storage is clients.storage
        assert clients.storage.filesystem()[0] is clients.storage.filesystem()[0]
        assert clients.has_storage
        assert clients.decryption(Topic("a", "b", "c")) is None


def test_what_was_given_is_used_and_not_closed(tmp_path: Path) -> None:
    storage = open_storage(settings(uri=str(tmp_path)).storage)
    with ClosedOnce() as admin:
        with Clients(settings(), admin=admin, storage=storage) as clients:
            assert clients.admin is admin
            assert clients.storage is storage
            assert clients.has_storage
        assert admin.closed == 0


def test_without_a_storage() -> None:
    clients = Clients(settings())
    assert not clients.has_storage
    with pytest.raises(ConfigurationError, match=r"storage\.uri is not set"):
        _ = clients.storage


def test_equal_settings_have_the_same_clients(tmp_path: Path) -> None:
    one = process_clients(settings(uri=str(tmp_path)))
    assert process_clients(settings(uri=str(tmp_path))) is one
    assert process_clients(settings()) is not one
    close_process_clients()
    assert process_clients(settings(uri=str(tmp_path))) is not one


def test_nothing_is_kept_of_what_nobody_uses() -> None:
    first = weakref.ref(process_clients(settings(uri="/0")))
    for number in range(1, 17):
        process_clients(settings(uri=f"/{number}"))
    gc.collect()
    assert first() is None


def good(request: int, ledger: int, entry: int) -> bytes:
    return answer(request, OK, ledger, entry, stored(ledger, entry, b"x"))


def read(clients: Clients, ledger: LedgerMetadata) -> int:
    with clients.bookies() as client:
        return sum(len(block) for block in client.read(ledger, 0, 9))


def test_connections_to_bookies_are_kept_from_task_to_task() -> None:
    with FakeBookie(good) as one, FakeBookie(good) as two, Clients(settings()) as clients:
        ledger = LedgerMetadata(
            7, "CLOSED", 2, 1, 1, 9, "CRC32C", ((0, (one.address, two.address)),)
        )
        for _ in range(5):
            assert read(clients, ledger) == 10
        assert (one.connections, two.connections) == (1, 1)
        one.hang_up()
        assert read(clients, ledger) == 10, "a connection that has ended is no failure"
        assert (one.connections, two.connections) == (2, 1)


def test_connections_to_bookies_are_opened_anew_once_a_secret_was_rotated(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("one")
    pulsar = {"bookkeeper": {"sasl_password_file": secret}}
    with FakeBookie(good) as bookie, Clients(ReadConfig.load({"pulsar": pulsar})) as clients:
        ledger = LedgerMetadata(7, "CLOSED", 2, 1, 1, 9, "CRC32C", ((0, (bookie.address,) * 2),))
        for content, connections in (("one", 1), ("one", 1), ("other", 2), ("other", 2)):
            secret.write_text(content)
            assert read(clients, ledger) == 10
            assert bookie.connections == connections


def test_connections_to_bookies_are_kept_while_a_secret_is_rotated(tmp_path: Path) -> None:
    secret, now = tmp_path / "secret", [0.0]
    secret.write_text("one")
    pulsar = {"bookkeeper": {"sasl_password_file": secret}}
    with (
        FakeBookie(good) as bookie,
        Clients(ReadConfig.load({"pulsar": pulsar}), clock=lambda: now[0]) as clients,
    ):
        ledger = LedgerMetadata(7, "CLOSED", 2, 1, 1, 9, "CRC32C", ((0, (bookie.address,) * 2),))
        assert read(clients, ledger) == 10
        secret.unlink()
        for _ in range(2):
            assert read(clients, ledger) == 10
        assert bookie.connections == 1
        now[0] = 1.0
        with pytest.raises(ConfigurationError, match=r"cannot read pulsar\.bookkeeper"):
            read(clients, ledger)
        secret.write_text("other")
        assert read(clients, ledger) == 10
        assert bookie.connections == 2


def test_while_certificate_and_key_do_not_match_bookies_are_read_as_before(tmp_path: Path) -> None:
    authority, certificate, now = Authority(tmp_path), tmp_path / "certificate.pem", [0.0]
    mine, other = authority.sign("mine"), authority.sign("other")
    certificate.write_bytes(mine.certificate.read_bytes())
    bookkeeper = {
        "tls": True,
        "tls_trust_certs_file": authority.certificate,
        "tls_certificate_file": certificate,
        "tls_key_file": mine.key,
    }
    config = ReadConfig.load({"pulsar": {"bookkeeper": bookkeeper}})
    with Clients(config, clock=lambda: now[0]) as clients:
        with clients.bookies() as first:
            pass
        certificate.write_bytes(other.certificate.read_bytes() + b"\n")  # of another size
        now[0] = 1.0
        with clients.bookies() as kept, clients.bookies():
            assert kept is first, "and the other is opened as they were"
        now[0] = 60.0
        with clients.bookies() as kept:
            assert kept is first, "a minute after it was seen"
        now[0] = 61.0
        with pytest.raises(ConfigurationError, match="cannot use the certificates"):
            clients.bookies().__enter__()
        certificate.write_bytes(mine.certificate.read_bytes())
        with clients.bookies():
            pass


def test_a_child_begins_with_none(tmp_path: Path) -> None:
    given = ClosedOnce()
    storage = open_storage(settings(uri=str(tmp_path)).storage)
    ours = process_clients(settings(uri=str(tmp_path)))
    others = Clients(settings(uri=str(tmp_path)), admin=given, storage=storage)
    admin = ours.admin
    with FakeBookie(good) as bookie:
        ledger = LedgerMetadata(7, "CLOSED", 2, 1, 1, 9, "CRC32C", ((0, (bookie.address,) * 2),))
        assert read(ours, ledger) == 10
        child = os.fork()
        if child == 0:
            code = 1
            try:
                fresh = process_clients(settings(uri=str(tmp_path)))
                assert fresh is not ours
                assert ours.admin is not admin
                assert others.admin is not given
                assert others.storage is not storage
                assert given.closed == 0
                assert read(ours, ledger) == 10
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert bookie.connections == 2
        assert ours.admin is admin
        assert read(ours, ledger) == 10, "the child has not said goodbye for us"
        assert bookie.connections == 2
    given.close()


def test_forks_leak_nothing() -> None:
    clients = Clients(settings())
    seen = weakref.ref(clients)
    del clients
    gc.collect()
    assert seen() is None
