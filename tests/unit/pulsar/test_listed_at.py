"""When a listing was answered, by the broker's clock."""

from typing import Any

import pytest

from reader.config import PulsarConfig
from reader.model import Partition, Topic
from reader.pulsar.admin import AdminClient
from testbed.serving import Asked, HttpAnswer, answering

PARTITION = Partition(Topic("public", "default", "orders"), 0)
DATE = "Thu, 01 Jan 2026 00:00:07 GMT"
DATE_MS = 1_767_225_607_000
NO_TRANSACTIONS = {"reason": "not configured with transactionCoordinatorEnabled=true"}


def ledger(number: int, state: str) -> dict[str, Any]:
    end = "length=1, lastEntryId=0, " if state == "CLOSED" else ""
    return {
        "ledgerId": number,
        "entries": 1,
        "size": 1,
        "metadata": "LedgerMetadata{formatVersion=3, ensembleSize=1, writeQuorumSize=1, "
        f"ackQuorumSize=1, state={state}, {end}digestType=CRC32C, password=OMITTED, "
        "ensembles={0=[bookie:3181]}, customMetadata={}}",
    }


@pytest.mark.parametrize(
    ("state", "date", "expected"),
    [
        pytest.param("OPEN", DATE, 2_000, id="what is printed of the open ledger"),
        pytest.param("CLOSED", DATE, DATE_MS, id="none is open: the header"),
        pytest.param("CLOSED", "", None, id="a proxy took the header out"),
    ],
)
def test_when_a_listing_was_answered(state: str, date: str, expected: int | None) -> None:
    answers = {
        "internalStats": {
            "lastConfirmedEntry": "2:0",
            "cursors": {},
            "ledgers": [ledger(1, "CLOSED"), ledger(2, state)],
        },
        "internal-info": {
            "ledgers": [{"ledgerId": 1, "timestamp": 1_000}, {"ledgerId": 2, "timestamp": 2_000}]
        },
    }

    def answer(asked: Asked) -> HttpAnswer:
        found = answers.get(asked.path.rsplit("/", 1)[1])
        status, body = (200, found) if found else (503, NO_TRANSACTIONS)
        return status, body, {"Date": date} if date else {}

    with answering(answer) as url, AdminClient(PulsarConfig(admin_url=url)) as admin:
        assert admin.ledgers(PARTITION).listed_at == expected
