"""No table is what a store says that answers for its bucket; all else is an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reader.config import StorageConfig
from reader.errors import UnavailableError
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable

TOPIC = Topic("public", "default", "orders")
EMPTY = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></ListBucketResult>'


@contextmanager
def store(status: int, body: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listed = "list-type" in self.path
            content = (body if listed else "").encode()
            self.send_response(status if listed else 404)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def opened(status: int, body: str) -> TopicTable | None:
    with store(status, body) as url:
        options = {
            "endpoint_url": url,
            "region": "us-east-1",
            "access_key_id": "a",
            "secret_access_key": "b",
            "allow_http": "true",
        }
        return TopicTable.open(open_storage(StorageConfig(uri="s3://b/p", options=options)), TOPIC)


def test_an_empty_bucket_has_no_table() -> None:
    assert opened(200, EMPTY) is None


@pytest.mark.parametrize(("status", "code"), [(404, "NoSuchBucket"), (403, "AccessDenied")])
def test_a_bucket_that_cannot_be_listed_is_an_error(status: int, code: str) -> None:
    with pytest.raises(UnavailableError, match="cannot read the table at s3://b/p"):
        opened(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>")
