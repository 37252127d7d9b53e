"""From a broker without TLS to one that has it, whose certificate is checked; never back."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from reader.config import PulsarConfig
from reader.errors import ConfigurationError
from reader.pulsar.admin import AdminClient
from testbed.security import Authority, Pair
from testbed.serving import serving


@contextmanager
def server(
    to: str | None = None,
    pair: Pair | None = None,
    before: Callable[[], object] = bool,
    cookies: list[str | None] | None = None,
) -> Iterator[str]:
    """Answers with tenants, or redirects ``to`` another; with TLS where it has a ``pair``.

    ``before`` is called before each answer. With ``cookies`` it sets one, and notes what comes.
    """

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            before()
            body = b"" if to else json.dumps(["public"]).encode()
            self.send_response(307 if to else 200)
            if to:
                self.send_header("Location", to + self.path)
            if cookies is not None:
                cookies.append(self.headers.get("Cookie"))
                self.send_header("Set-Cookie", "instance=1; Path=/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if pair is not None:
        http.socket = pair.server_context().wrap_socket(http.socket, server_side=True)
    with serving(http):
        yield f"http{'s' if pair else ''}://127.0.0.1:{http.server_address[1]}"


def test_certificates_that_were_rotated_are_used_from_the_next_request_on(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    trust = tmp_path / "trust.pem"

    def rotate(content: bytes) -> None:
        (tmp_path / "new").write_bytes(content)
        (tmp_path / "new").rename(trust)

    rotate(ours.certificate.read_bytes())
    with server(pair=ours.sign("broker")) as url:
        with AdminClient(PulsarConfig(admin_url=url, tls_trust_certs_file=trust)) as admin:
            assert [admin.tenants() for _ in range(2)] == [["public"]] * 2
            rotate(b"half of a file")
            assert admin.tenants() == ["public"], "what was there before is used meanwhile"
            rotate(other.certificate.read_bytes())
            with pytest.raises(ConfigurationError, match="certificate"):
                admin.tenants()
            rotate(ours.certificate.read_bytes())
            assert admin.tenants() == ["public"]


def test_a_request_under_way_keeps_its_connections_while_certificates_are_rotated(
    tmp_path: Path,
) -> None:
    ours = Authority(tmp_path / "ours")
    began, rotated = threading.Event(), threading.Event()

    def wait() -> None:
        if not began.is_set():
            began.set()
            assert rotated.wait(60)

    trust = tmp_path / "trust.pem"
    trust.write_bytes(ours.certificate.read_bytes())
    with server(pair=ours.sign("broker"), before=wait) as url:
        with AdminClient(PulsarConfig(admin_url=url, tls_trust_certs_file=trust)) as admin:
            with ThreadPoolExecutor(1) as pool:
                first = pool.submit(admin.tenants)
                assert began.wait(60)
                (tmp_path / "new").write_bytes(trust.read_bytes())
                (tmp_path / "new").rename(trust)
                assert admin.tenants() == ["public"]
                rotated.set()
                assert first.result() == ["public"]


def test_a_request_under_way_ends_while_new_certificates_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Authority(tmp_path / "ours")
    began, loading, ended = threading.Event(), threading.Event(), threading.Event()
    create = ssl.create_default_context

    def wait() -> None:
        if not began.is_set():
            began.set()
            assert loading.wait(60)

    def load(*args: Any, **kwargs: Any) -> ssl.SSLContext:
        if began.is_set():
            loading.set()
            assert ended.wait(60), "the other request waits for this one's certificates"
        return create(*args, **kwargs)

    monkeypatch.setattr(ssl, "create_default_context", load)
    trust = tmp_path / "trust.pem"
    trust.write_bytes(ours.certificate.read_bytes())
    with server(pair=ours.sign("broker"), before=wait) as url:
        with AdminClient(PulsarConfig(admin_url=url, tls_trust_certs_file=trust)) as admin:
            with ThreadPoolExecutor(2) as pool:
                first = pool.submit(admin.tenants)
                first.add_done_callback(lambda _: ended.set())
                assert began.wait(60)
                (tmp_path / "new").write_bytes(trust.read_bytes())
                (tmp_path / "new").rename(trust)
                assert pool.submit(admin.tenants).result() == first.result() == ["public"]


def test_certificates_that_stay_useless_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, now, loaded = Authority(tmp_path / "ours"), [0.0], []
    create = ssl.create_default_context

    def load(*args: Any, **kwargs: Any) -> ssl.SSLContext:
        loaded.append(1)
        return create(*args, **kwargs)

    monkeypatch.setattr(ssl, "create_default_context", load)
    mine, other = ours.sign("client"), ours.sign("other")
    certificate = tmp_path / "certificate.pem"
    certificate.write_bytes(mine.certificate.read_bytes())
    with server(pair=ours.sign("broker")) as url:
        config = PulsarConfig(
            admin_url=url,
            tls_trust_certs_file=ours.certificate,
            tls_certificate_file=certificate,
            tls_key_file=mine.key,
        )
        with AdminClient(config, clock=lambda: now[0]) as admin:
            assert admin.tenants() == ["public"]
            certificate.write_bytes(other.certificate.read_bytes() + b"\n")  # of another size
            loaded.clear()
            for _ in range(10):
                assert admin.tenants() == ["public"]
            assert len(loaded) == 1, "files that are the same are not loaded again"
            now[0] = 60.0
            with pytest.raises(ConfigurationError, match="cannot use the certificates"):
                admin.tenants()
            certificate.write_bytes(mine.certificate.read_bytes())
            assert admin.tenants() == ["public"]
            certificate.unlink()
            assert admin.tenants() == ["public"]
            now[0] += 1.0
            with pytest.raises(ConfigurationError, match="No such file"):
                admin.tenants()


@pytest.mark.parametrize("tls", [False, True])
def test_cookies_are_sent_back(tmp_path: Path, tls: bool) -> None:
    ours, seen = Authority(tmp_path), list[str | None]()
    with server(pair=ours.sign("broker") if tls else None, cookies=seen) as url:
        config = PulsarConfig(admin_url=url, tls_trust_certs_file=ours.certificate)
        with AdminClient(config) as admin:
            assert [admin.tenants() for _ in range(2)] == [["public"]] * 2
    assert seen == [None, "instance=1"]


def test_a_redirect_to_tls_is_followed_and_checked(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    with server(pair=ours.sign("broker")) as secure, server(to=secure) as plain:
        for trust in (ours, other):
            config = PulsarConfig(admin_url=plain, tls_trust_certs_file=trust.certificate)
            with AdminClient(config) as admin:
                if trust is ours:
                    assert [admin.tenants() for _ in range(2)] == [["public"]] * 2
                else:
                    with pytest.raises(ConfigurationError, match="certificate"):
                        admin.tenants()


def test_a_token_does_not_go_from_tls_to_none(tmp_path: Path) -> None:
    ours, seen = Authority(tmp_path), list[str | None]()
    with server(cookies=seen) as plain, server(to=plain, pair=ours.sign("broker")) as secure:
        config = PulsarConfig(
            admin_url=secure, token=SecretStr("t"), tls_trust_certs_file=ours.certificate
        )
        with AdminClient(config) as admin:
            with pytest.raises(ConfigurationError, match="redirects from TLS to http:"):
                admin.tenants()
    assert seen == []
