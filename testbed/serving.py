"""HTTP servers of a test's own, in a thread, for one block; or nobody at a port."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import TypeVar

S = TypeVar("S", bound=HTTPServer)

_POLL_SECONDS = 0.01
"""The longest time until the server has stopped at the block's end."""


@contextmanager
def serving(server: S) -> Iterator[S]:
    """Let a server answer until the block ends, by an exception, too; then close it.

    A server that is closed while its thread runs takes all CPU time that it can get from then on.
    """
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), daemon=True)
    with server:
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, without its query; ``target``: with it."""

    method: str
    target: str
    headers: Message

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


HttpAnswer = tuple[int, object, Mapping[str, str]]
"""Status, body and headers. Bytes and text are the body, None is an empty one, others are JSON."""


@contextmanager
def answering(answer: Callable[[Asked], HttpAnswer]) -> Iterator[str]:
    """Yield the URL of a server on loopback that gives these answers, and no headers beside."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are written one after the other

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body, headers = answer(Asked(self.command, self.path, self.headers))
            if not isinstance(body, bytes):
                text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
                body = text.encode()
            self.send_response_only(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}"


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port of loopback that refuses connections until the block ends: nobody else gets it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
