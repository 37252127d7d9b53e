"""What the broker says that an entry is."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from reader.config import PulsarConfig
from reader.errors import NotFoundError, UnavailableError
from reader.model import Partition, Topic
from reader.pulsar.admin import AdminClient
from reader.pulsar.entries import EntryInfo
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
    ("headers", "info"),
    [
        ({}, EntryInfo(1)),
        ({"num-batch-message": "7", "batch-size": "100"}, EntryInfo(7)),
        ({"num-batch-message": "1"}, EntryInfo(1)),
        ({"marker-type": "21"}, EntryInfo(0)),
        ({"num-batch-message": "7", "txn-aborted": "true"}, EntryInfo(0)),
        ({"num-batch-message": "7", "txn-aborted": "false"}, EntryInfo(7)),
        (CHUNK, EntryInfo(1, "u", 2, 3)),
        (CHUNK | {"txn-aborted": "true"}, EntryInfo(0)),
        (CHUNK | {"num-chunks-from-msg": "1", "chunk-id": "0"}, EntryInfo(1)),
    ],
)
def test_what_an_entry_is(headers: dict[str, str], info: EntryInfo) -> None:
    full = {f"X-Pulsar-{name}": value for name, value in headers.items()}
    http = Answers(200, {"X-Pulsar-Message-ID": "5:8"} | full)
    with AdminClient(PulsarConfig(), http=http) as admin:
        assert admin.entry_info(PARTITION, 5, 8) == info
    path = "/admin/v2/persistent/public/default/orders-partition-2/ledger/5/entry/8"
    assert http.asked == [f"HEAD {path}"]


@pytest.mark.parametrize(
    ("status", "headers", "error"),
    [
        (200, {}, UnavailableError),
        (200, {"X-Pulsar-Message-ID": "5:9"}, UnavailableError),
        (
            200,
            {"X-Pulsar-Message-ID": "5:8", "X-Pulsar-num-batch-message": "x"},
            UnavailableError,
        ),
        (
            200,
            {"X-Pulsar-Message-ID": "5:8", "X-Pulsar-num-chunks-from-msg": "2"},
            UnavailableError,
        ),
        (404, {}, NotFoundError),
        (500, {}, UnavailableError),
    ],
)
def test_what_is_no_answer_is_an_error(
    status: int, headers: dict[str, str], error: type[Exception]
) -> None:
    with AdminClient(PulsarConfig(), http=Answers(status, headers)) as admin:
        with pytest.raises(error):
            admin.entry_info(PARTITION, 5, 8)
