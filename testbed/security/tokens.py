"""Tokens as Pulsar's `AuthenticationProviderToken` takes them, and a server that gives them out."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from testbed.process import Server
from testbed.security.certificates import Pair


def make_token(secret: bytes, role: str, seconds: float | None = None) -> str:
    """A JSON Web Token (HS256) for `role`; `seconds`: until it expires, None for never."""
    claims: dict[str, Any] = {"sub": role, "iat": int(time.time())}
    if seconds is not None:
        claims["exp"] = int(time.time() + seconds)
    parts = ".".join(_text(json.dumps(one).encode()) for one in ({"alg": "HS256"}, claims))
    return f"{parts}.{_text(hmac.digest(secret, parts.encode(), hashlib.sha256))}"


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


class TokenServer(Server):
    """An OpenID provider on loopback: discovery, and tokens for client credentials.

    clients: id → secret; a token's subject is the id.
    seconds: how long a token is good. `asked` is what each request for a token said.
    """

    def __init__(
        self,
        secret: bytes,
        clients: Mapping[str, str],
        seconds: float = 3600,
        tls: Pair | None = None,
    ) -> None:
        self.seconds = seconds
        self.asked: list[dict[str, str]] = []
        self._secret = secret
        self._clients = dict(clients)
        self._tls = tls

    @property
    def issuer(self) -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = self.path == "/.well-known/openid-configuration"
                self._reply(200 if known else 404, {"token_endpoint": f"{outer.issuer}/token"})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._reply(*outer._answer(dict(parse_qsl(body))))

            def _reply(self, status: int, answer: Mapping[str, Any]) -> None:
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if self._tls is not None:
            context = self._tls.server_context()
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.asked.append(form)
        client = form.get("client_id", "")
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        if not client or self._clients.get(client) != form.get("client_secret"):
            return 401, {"error": "invalid_client", "error_description": "unknown client"}
        token = make_token(self._secret, client, self.seconds)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": self.seconds}
