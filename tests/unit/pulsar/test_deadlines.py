"""Who sends a little now and then keeps every single timeout, and still has to come to an end."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from reader.config import OAuth2Config, PulsarConfig
from reader.errors import UnavailableError
from reader.pulsar import answers, credentials, http
from reader.pulsar.admin import AdminClient
from testbed.security import Authority, Pair

BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TENANTS = b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n["public"]'


@contextmanager
def dripping(
    first: bytes,
    again: bytes,
    pair: Pair | None = None,
    answered: int = 0,
    each: Callable[[], object] = bool,
) -> Iterator[int]:
    """The port of a server that answers ``answered`` requests of a connection, and then drips.

    ``each`` is called before each drop.
    """
    context = pair.server_context() if pair is not None else None
    ended = threading.Event()

    def drip(peer: socket.socket) -> None:
        with (
            suppress(OSError),
            peer if context is None else context.wrap_socket(peer, server_side=True) as talk,
        ):
            for _ in range(answered):
                talk.recv(65536)
                talk.sendall(TENANTS)
            talk.recv(65536)
            talk.sendall(first)
            while not ended.wait(0.02):
                each()
                talk.sendall(again)

    def serve() -> None:
        with suppress(OSError):
            while True:
                peer = listening.accept()[0]
                threading.Thread(target=drip, args=(peer,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def ended_in_time(ask: Callable[[], None]) -> None:
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "the request still runs"


def too_late(settings: PulsarConfig, before: int = 0) -> str:
    """The error of the request after ``before``."""
    found: list[str] = []

    def ask() -> None:
        with AdminClient(settings) as admin:
            for _ in range(before):
                admin.tenants()
            try:
                admin.tenants()
            except UnavailableError as error:
                found.append(str(error))

    ended_in_time(ask)
    return found[0]


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> PulsarConfig:
    monkeypatch.setattr(http, "MOST_TIMEOUTS", 0.1)
    return PulsarConfig(timeout=timedelta(seconds=9))


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (BODY, b" "),
        (CHUNKED, b"1\r\n \r\n"),
        (CHUNKED + b"1;", b"x"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    ],
    ids=["body", "chunks", "chunk header", "header", "hints"],
)
def test_an_answer_that_drips_has_a_deadline(
    brief: PulsarConfig, first: bytes, again: bytes
) -> None:
    with dripping(first, again) as port:
        url = f"http://127.0.0.1:{port}"
        said = too_late(brief.model_copy(update={"admin_url": url}))
    assert f"Pulsar admin at {url}: the answer is not whole after 0.9 s" in said


def test_a_connection_that_was_kept_has_a_deadline(brief: PulsarConfig) -> None:
    with dripping(BODY, b" ", answered=2) as port:
        # What is asked before has as much time as the last one.
        more = {"admin_url": f"http://127.0.0.1:{port}", "timeout": timedelta(seconds=30)}
        settings = brief.model_copy(update=more)
        assert "not whole after" in too_late(settings, before=2)


def test_with_tls_there_is_a_deadline(brief: PulsarConfig, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with dripping(BODY, b" ", authority.sign("broker")) as port:
        more = {
            "admin_url": f"https://127.0.0.1:{port}",
            "tls_trust_certs_file": authority.certificate,
        }
        assert "not whole after" in too_late(brief.model_copy(update=more))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_through_a_proxy_there_is_a_deadline(
    brief: PulsarConfig, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x") as port:
        monkeypatch.setenv(f"{scheme}_proxy", f"http://127.0.0.1:{port}")
        settings = brief.model_copy(update={"admin_url": f"{scheme}://admin.example:8080"})
        assert "not whole after" in too_late(settings)


def test_an_honest_answer_may_take_longer_than_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def pass_on() -> None:
        nonlocal now
        now += 15.0

    monkeypatch.setattr(answers, "time", SimpleNamespace(monotonic=lambda: now))
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n"
    with dripping(head + b'["public"]', b" ", each=pass_on) as port:  # 30 spaces
        url = f"http://127.0.0.1:{port}"
        with AdminClient(PulsarConfig(admin_url=url, timeout=timedelta(minutes=1))) as admin:
            assert admin.tenants() == ["public"]
            assert now >= 450


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[PulsarConfig]:
    monkeypatch.setattr(credentials, "TIMEOUT_SECONDS", 0.6)
    with dripping(BODY, b" ") as port:
        oauth2 = OAuth2Config(
            issuer_url=f"http://127.0.0.1:{port}", client_id="a", client_secret=SecretStr("b")
        )
        yield PulsarConfig(oauth2=oauth2)


def test_an_issuer_that_drips_has_a_deadline(issuer: PulsarConfig) -> None:
    found: list[str] = []

    def ask() -> None:
        try:
            credentials.current_token(issuer)
        except UnavailableError as error:
            found.append(str(error))

    ended_in_time(ask)
    assert "the answer is not whole after 0.6 s" in found[0]
