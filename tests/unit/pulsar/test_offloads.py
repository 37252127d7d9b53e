"""Which ledgers Pulsar's own tiered storage has, and under which names."""

from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from reader.model import OffloadContext, Partition, Topic
from reader.pulsar import LedgerInfo
from reader.pulsar.http import AdminHttp
from reader.pulsar.ledgers import LedgerRequests

PARTITION = Partition(Topic("public", "default", "orders"), 0)
UUID = "4a1e9e0e-0000-0000-0000-0123456789ab"
METADATA = (
    "LedgerMetadata{formatVersion=3, ensembleSize=1, writeQuorumSize=1, ackQuorumSize=1, "
    "state=CLOSED, length=1, lastEntryId=0, digestType=CRC32C, password=OMITTED, "
    "ensembles={0=[bookie:3181]}, customMetadata={}}"
)


def listed(stats: dict[str, Any], info: dict[str, Any]) -> LedgerInfo:
    """One ledger of which Pulsar says this."""
    ledger = {"ledgerId": 1, "entries": 1, "size": 1}
    end = {"lastConfirmedEntry": "1:0", "cursors": {}, "ledgers": [{**ledger, **stats}]}
    about = {"ledgers": [{**ledger, "timestamp": 1_000, **info}]}
    http = SimpleNamespace(
        get=lambda path, what, **query: end,
        request=lambda method, path: httpx.Response(200, json=about),
        check=lambda answer, what: answer,
    )
    asked = LedgerRequests(cast(AdminHttp, http), clock=lambda: 0.0, sleep=lambda seconds: None)
    (found,) = asked.ledgers(PARTITION, transactions=False).ledgers
    return found


@pytest.mark.parametrize("metadata", [None, METADATA])
def test_what_is_offloaded_is_read_by_its_uuid(metadata: str | None) -> None:
    found = listed(
        {"offloaded": True, "metadata": metadata},
        {"isOffloaded": True, "offloadedContextUuid": UUID},
    )
    assert found.stored == OffloadContext(UUID)
    assert found.closed


def test_what_is_only_prepared_is_not_offloaded() -> None:
    """``internal-info`` says that it is."""
    found = listed(
        {"offloaded": False, "metadata": METADATA},
        {"isOffloaded": True, "offloadedContextUuid": UUID},
    )
    assert not found.offloaded
    assert found.offload is None
    assert found.stored == found.metadata


@pytest.mark.parametrize("uuid", [None, "", "x", f"../{UUID}", f"{UUID}/", UUID[:-1]])
def test_no_path_is_made_of_what_is_no_uuid(uuid: str | None) -> None:
    found = listed({"offloaded": True, "metadata": METADATA}, {"offloadedContextUuid": uuid})
    assert found.offloaded
    assert found.stored is None
