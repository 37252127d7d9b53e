"""What the broker says that an entry is."""

from typing import Any

import httpx
import pytest

from reader.config import PulsarConfig
from reader.errors import NotFoundError, UnavailableError
from reader.model import Partition, Topic
from reader.pulsar.admin import AdminClient
from reader.pulsar.http import AdminHttp

PARTITION = Partition(Topic("public", "default", "orders"), 2)


class Answers(AdminHttp):
    def __init__(self, status: int, headers: dict[str, str]) -> None:
        super().__init__(PulsarConfig())
        self.asked: list[str] = []
        self._answer = httpx.Response(status, headers=headers)

    def request(self, method: str, path: str, **_: Any) -> httpx.Response:
        self.asked.append(f"{method} {path}")
        return self._answer


CHUNK = {"num-chunks-from-msg": "3", "chunk-id": "2", "uuid": "u"}


@pytest.mark.parametrize(
    ("headers", "hidden"),
    [
        ({}, False),
        ({"num-batch-message": "7", "batch-size": "100"}, False),
        ({"marker-type": "21"}, True),
        ({"num-batch-message": "7", "txn-aborted": "true"}, True),
        ({"num-batch-message": "7", "txn-aborted": "false"}, False),
        (CHUNK, False),
        (CHUNK | {"txn-aborted": "true"}, True),
    ],
)
def test_which_entries_are_hidden(headers: dict[str, str], hidden: bool) -> None:
    full = {f"X-Pulsar-{name}": value for name, value in headers.items()}
    http = Answers(200, {"X-Pulsar-Message-ID": "5:8"} | full)
    with AdminClient(PulsarConfig(), http=http) as admin:
        assert admin.is_hidden(PARTITION, 5, 8) is hidden
    path = "/admin/v2/persistent/public/default/orders-partition-2/ledger/5/entry/8"
    assert http.asked == [f"HEAD {path}"]


@pytest.mark.parametrize(
    ("status", "headers", "error"),
    [
        (200, {}, UnavailableError),
        (200, {"X-Pulsar-Message-ID": "5:9"}, UnavailableError),
        (404, {}, NotFoundError),
        (500, {}, UnavailableError),
    ],
)
def test_what_is_no_answer_is_an_error(
    status: int, headers: dict[str, str], error: type[Exception]
) -> None:
    with AdminClient(PulsarConfig(), http=Answers(status, headers)) as admin:
        with pytest.raises(error):
            admin.is_hidden(PARTITION, 5, 8)
