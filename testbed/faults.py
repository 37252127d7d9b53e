"""What goes wrong on demand: `FaultyStore` for object storage, `TcpProxy` for everything else."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from testbed.closing import Closing

Match = Callable[[str, str], bool]
"""Of a request's method and path (with its query), percent-decoded: object_store encodes a lot of
what it asks GCS for."""

Call = Callable[[], bool]
"""Whether the request goes on; if not, its connection is dropped."""

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


class Fault(Enum):
    """What happens to a request."""

    APPLY_THEN_500 = "applied, then answered 500"
    APPLY_THEN_DROP = "applied, then the connection dropped without an answer"
    REFUSE = "answered 503, not applied"
    CONFLICT = "answered 409, not applied"
    SLOW = "answered late"
    TRUNCATE = "cut off in the middle of the answer"
    CALL_BEFORE = "a function is called before it is applied"
    CALL_AFTER = "a function is called once it is applied, before the answer"


@dataclass
class Rule:
    """The next `left` requests that match suffer the fault; `hits` counts those that did."""

    fault: Fault
    match: Match
    left: int
    hits: int = 0
    seconds: float = 0.0
    call: Call = lambda: True


class FaultyStore(Closing):
    """An HTTP proxy in front of a store that speaks HTTP.

    `with FaultyStore(s3.endpoint) as store:`; `s3.options_at(store.endpoint)` are its options.
    Requests go on unchanged (Host, too: the signature stays what the client made of it).
    `requests` lists (method, path, status; 0 for a dropped one) in the order of the answers;
    `hits` counts what suffered a fault.
    """

    def __init__(self, upstream: str, port: int = 0) -> None:
        self.upstream = urlsplit(upstream).netloc
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self.requests: list[tuple[str, str, int]] = []
        self.hits = 0
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.store = self
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def apply_then_500(self, match: Match, times: int = 1) -> Rule:
        """The store does it, and says that it failed."""
        return self._add(Rule(Fault.APPLY_THEN_500, match, times))

    def apply_then_drop(self, match: Match, times: int = 1) -> Rule:
        """The store does it, and nobody hears of it."""
        return self._add(Rule(Fault.APPLY_THEN_DROP, match, times))

    def refuse(self, match: Match, times: int = 1) -> Rule:
        """503 Slow Down; nothing is done."""
        return self._add(Rule(Fault.REFUSE, match, times))

    def conflict(self, match: Match, times: int = 1) -> Rule:
        """409 ConditionalRequestConflict, as S3 answers one of two writes at once."""
        return self._add(Rule(Fault.CONFLICT, match, times))

    def slow(self, match: Match, seconds: float, times: int = 1) -> Rule:
        """Everything right, and late."""
        return self._add(Rule(Fault.SLOW, match, times, seconds=seconds))

    def truncate(self, match: Match, times: int = 1) -> Rule:
        """The answer's headers and half of its body."""
        return self._add(Rule(Fault.TRUNCATE, match, times))

    def call(self, match: Match, call: Call, *, applied: bool, times: int = 1) -> Rule:
        """``call`` runs at this very request: before it is done, or once it is ``applied``."""
        fault = Fault.CALL_AFTER if applied else Fault.CALL_BEFORE
        return self._add(Rule(fault, match, times, call=call))

    def heal(self) -> None:
        """Forget every rule."""
        with self._lock:
            self._rules.clear()

    def _add(self, rule: Rule) -> Rule:
        with self._lock:
            self._rules.append(rule)
        return rule

    def rule_for(self, method: str, path: str) -> Rule | None:
        with self._lock:
            for rule in self._rules:
                if rule.left > 0 and rule.match(method, unquote(path)):
                    rule.left -= 1
                    rule.hits += 1
                    self.hits += 1
                    return rule
        return None

    def forward(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """Status, headers and body of the real server's answer."""
        connection = http.client.HTTPConnection(self.upstream, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                if name.lower() not in _HOP_BY_HOP:
                    connection.putheader(name, value)
            if body or method in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            kept = [
                (name, value)
                for name, value in answer.getheaders()
                # A HEAD's length says how large the object is, not how long the answer is.
                if name.lower() not in _HOP_BY_HOP
                or (method == "HEAD" and name.lower() == "content-length")
            ]
            return answer.status, kept, answer.read()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    store: FaultyStore

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are expected here: no traceback."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one segment
    disable_nagle_algorithm = True
    server: _Server

    def handle_expect_100(self) -> bool:
        """Flushed: a client that gets no 100 Continue holds its body back for seconds."""
        goes_on = super().handle_expect_100()
        self.wfile.flush()
        return goes_on

    def do_any(self) -> None:
        store = self.server.store
        body = self._body()
        rule = store.rule_for(self.command, self.path)
        fault = rule.fault if rule else None
        headers: list[tuple[str, str]] = []
        if rule is not None and fault is Fault.SLOW:
            time.sleep(rule.seconds)
        if rule is not None and fault is Fault.CALL_BEFORE and not rule.call():
            store.requests.append((self.command, self.path, 0))
            self._drop()
            return
        if fault is Fault.REFUSE:
            status, content = 503, _error("SlowDown")
        elif fault is Fault.CONFLICT:
            status, content = 409, _error("ConditionalRequestConflict")
        else:
            status, headers, content = store.forward(
                self.command, self.path, list(self.headers.items()), body
            )
            if fault is Fault.APPLY_THEN_500:
                status, headers, content = 500, [], _error("InternalError")
        dropped = fault is Fault.APPLY_THEN_DROP
        if rule is not None and fault is Fault.CALL_AFTER:
            dropped = not rule.call()
        store.requests.append((self.command, self.path, 0 if dropped else status))
        if dropped:
            self._drop()
            return
        self._answer(status, headers, content, whole=fault is not Fault.TRUNCATE)
        if fault is Fault.TRUNCATE:
            self._drop()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_any  # noqa: N815 (the base class's names)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(parts)

    def _answer(
        self, status: int, headers: list[tuple[str, str]], content: bytes, *, whole: bool
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD" and status not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content if whole else content[: len(content) // 2])

    def _drop(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.flush()
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Silent; `FaultyStore.requests` has it."""


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
