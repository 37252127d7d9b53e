"""`serving`: an HTTP server of a test's own, in a thread, for one block; or nobody at a port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from typing import TypeVar

__all__ = ["refusing_port", "serving"]

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


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port of loopback that refuses connections until the block ends: nobody else gets it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
