"""From a broker without TLS to one that has it: the certificate is checked all the same."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reader.config import PulsarConfig
from reader.errors import ConfigurationError
from reader.pulsar.admin import AdminClient
from testbed.security.certificates import Authority, Pair


@contextmanager
def server(to: str | None = None, pair: Pair | None = None) -> Iterator[str]:
    """Answers with tenants, or redirects ``to`` another; with TLS where it has a ``pair``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"" if to else json.dumps(["public"]).encode()
            self.send_response(307 if to else 200)
            if to:
                self.send_header("Location", to + self.path)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        if pair is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.certificate, pair.key)
            http.socket = context.wrap_socket(http.socket, server_side=True)
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http{'s' if pair else ''}://127.0.0.1:{http.server_address[1]}"
        http.shutdown()


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
