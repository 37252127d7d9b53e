"""What the admin client makes of answers that a real Pulsar gives only now and then."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reader.admin import AdminClient
from reader.config import PulsarConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Position, Topic

PARTITION = Partition(Topic("public", "default", "orders"), 0)


@contextmanager
def answering(status: int, reason: str) -> Iterator[AdminClient]:
    """A client of a server that gives this answer to every POST."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"reason": reason}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with AdminClient(PulsarConfig(admin_url=url)) as admin:
            yield admin
        server.shutdown()


def test_a_hold_that_somebody_else_is_moving_is_left_to_it() -> None:
    with answering(412, "Failed for Subscription Busy: Failed to fence subscription") as admin:
        assert admin.move_hold(PARTITION, "pulsar-lake", Position(4, 0)) is False


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        (412, "Unable to find position for position specified", ConfigurationError),
        (403, "Unauthorized", ConfigurationError),
        (500, "Broken", UnavailableError),
    ],
)
def test_other_refusals_to_move_a_hold_are_errors(
    status: int, reason: str, error: type[Exception]
) -> None:
    with answering(status, reason) as admin, pytest.raises(error) as raised:
        admin.move_hold(PARTITION, "pulsar-lake", Position(4, 0))
    assert reason in str(getattr(raised.value, "hint", ""))
