"""What Pulsar shows of a compaction: the cursor says which ledger it made, and up to where."""

from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from reader.model import Partition, Position, Topic
from reader.pulsar import CompactedLedger
from reader.pulsar.http import AdminHttp
from reader.pulsar.ledgers import LedgerRequests
from tests.unit.pulsar.test_offloads import METADATA

PARTITION = Partition(Topic("public", "default", "orders"), 0)
NOTHING = {"ledgerId": -1, "entries": -1, "size": -1}


def asked(cursor: dict[str, Any] | None, shown: dict[str, Any]) -> LedgerRequests:
    stats = {
        "lastConfirmedEntry": "40:9",
        "cursors": {} if cursor is None else {"__compaction": cursor},
        "ledgers": [],
        "compactedLedger": shown,
    }
    http = SimpleNamespace(
        get=lambda path, what, **query: stats,
        request=lambda method, path: httpx.Response(200, json={}),
        check=lambda answer, what: answer,
    )
    return LedgerRequests(cast(AdminHttp, http), clock=lambda: 0.0, sleep=lambda seconds: None)


def cursor(ledger: int | None, upto: str = "40:9") -> dict[str, Any]:
    found = {"markDeletePosition": upto, "readPosition": "40:10"}
    return found | ({} if ledger is None else {"properties": {"CompactedTopicLedger": ledger}})


def shown(ledger: int) -> dict[str, Any]:
    return {"ledgerId": ledger, "entries": 1, "size": 1, "metadata": METADATA}


@pytest.mark.parametrize(
    ("at", "ledger", "found"),
    [
        pytest.param(None, NOTHING, None, id="never compacted"),
        pytest.param(cursor(None, "31:-1"), NOTHING, None, id="before the first compaction"),
        pytest.param(cursor(None, "31:-1"), shown(90), None, id="the first is about to end"),
        pytest.param(cursor(90), NOTHING, (90, False), id="its bookies did not answer"),
        pytest.param(cursor(90), shown(91), (90, False), id="the next is about to end"),
        pytest.param(cursor(90), shown(90), (90, True), id="compacted"),
    ],
)
def test_the_compacted_ledger(
    at: dict[str, Any] | None, ledger: dict[str, Any], found: tuple[int, bool] | None
) -> None:
    requests = asked(at, ledger)

    def short(one: CompactedLedger | None) -> tuple[int, bool] | None:
        return None if one is None else (one.ledger_id, one.metadata is not None)

    listing = requests.ledgers(PARTITION, transactions=False)
    assert short(listing.compacted) == short(requests.compacted(PARTITION)) == found
    assert listing.has_compaction == (at is not None)
    if listing.compacted is not None:
        assert listing.compacted.upto == Position(40, 9)
