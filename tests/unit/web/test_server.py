"""The server itself: many connections that ask nothing take nobody's place, and are given up."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from offloader.web.health import LOOP_SECONDS
from offloader.web.server import StatusServer, bind
from reader.clients import Clients
from tests.unit.web.test_ready import daemon
from tests.unit.web.world import NOWHERE, World


@pytest.fixture
def served(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StatusServer]:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path))
    config = World().config
    with (
        daemon(NOWHERE, "shop/live/orders") as made,
        Clients(config) as clients,
        bind(config.http) as listening,
        StatusServer(
            clients,
            config.offload,
            config.http,
            made,
            listening,
            stopping=lambda: False,
            said=pytest.fail,
            **getattr(request, "param", {}),
        ) as serving,
    ):
        yield serving


def connect(served: StatusServer) -> socket.socket:
    port = int(served.url.rstrip("/").rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def test_connections_that_ask_nothing_take_nobodys_place(served: StatusServer) -> None:
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(connect(served))
        asked = [stack.enter_context(connect(served)) for _ in range(300)]
        for one in asked:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert {one.recv(12) for one in asked} == {b"HTTP/1.1 200"}
        assert httpx.get(f"{served.url}healthz").status_code == 200


@pytest.mark.parametrize("served", [{"first_request_seconds": 2.0}], indirect=True)
def test_a_connection_without_a_request_is_given_up(served: StatusServer) -> None:
    with connect(served) as silent, connect(served) as slow, connect(served) as fine:
        slow.sendall(b"GET /healthz HTT")
        fine.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert fine.recv(12) == b"HTTP/1.1 200"
        assert silent.recv(1) == slow.recv(1) == b"", "closed"
        fine.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""
        while b"HTTP/1.1" not in heard:
            more = fine.recv(1 << 16)
            assert more, "it is still there"
            heard += more


def test_the_page_goes_by_the_daemons_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path))
    config = World().config
    now = 5.0
    with (
        daemon(NOWHERE, "shop/live/orders", elapsed=lambda: now) as made,
        Clients(config) as clients,
        bind(config.http) as listening,
        StatusServer(
            clients,
            config.offload,
            config.http,
            made,
            listening,
            stopping=lambda: False,
            said=pytest.fail,
        ) as serving,
    ):
        made.scheduler.beat()
        assert made.scheduler.turned_at == now
        now = 12.5
        metrics = httpx.get(f"{serving.url}metrics").text
        assert "pulsar_lake_loop_age_seconds 7.5\n" in metrics
        assert httpx.get(f"{serving.url}healthz").status_code == 200
        now += 2 * LOOP_SECONDS
        assert httpx.get(f"{serving.url}healthz").status_code == 503
