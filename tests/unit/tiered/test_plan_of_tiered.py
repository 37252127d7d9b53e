"""Ledgers that Pulsar's own tiered storage has taken: their tier, and how they are cut."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offloader.backlog.policy import sealed as sealed_ledgers
from reader.config import ReadConfig
from reader.errors import NotFoundError
from reader.model import OffloadContext, Tier
from reader.model.reasons import Reason
from reader.plan import cut_ranges, from_token, to_token, whole
from reader.plan.snapshot import take_snapshot
from reader.pulsar import LedgerInfo
from tests.unit.plan.test_snapshot import TOPIC, FakeAdmin, FakeClients, listing, opened, sealed
from tests.unit.plan.values import segment

UUID = OffloadContext("4a1e9e0e-0000-0000-0000-000000000001")


def moved(ledger: int, **changes: Any) -> LedgerInfo:
    """As Pulsar lists one: by some drivers with metadata, by others without."""
    return sealed(ledger, **{"metadata": None, "offloaded": True, "offload": UUID, **changes})


def config(tmp_path: Path, *namespaces: str) -> ReadConfig:
    places = [{"uri": "s3://bucket", "namespaces": [one]} for one in namespaces]
    return ReadConfig.load({"storage": {"uri": str(tmp_path)}, "tiered": places})


@pytest.mark.parametrize("namespaces", [["*/*"], ["public/default"], ["x/y", "pub*/d?fault"]])
def test_a_place_for_the_namespace_makes_the_tier(tmp_path: Path, namespaces: list[str]) -> None:
    ledgers = [moved(1), sealed(2), moved(3, metadata=sealed(3).metadata), opened(4)]
    admin = FakeAdmin(listing(ledgers, "4:9"))
    snapshot = take_snapshot(FakeClients(config(tmp_path, *namespaces), admin), TOPIC)
    assert [(one.tier, one.reason.kind, one.metadata) for one in snapshot.hot] == [
        (Tier.TIERED, Reason.PULSAR_TIERED, UUID),
        (Tier.BOOKKEEPER, Reason.SEALED, sealed(2).metadata),
        (Tier.TIERED, Reason.PULSAR_TIERED, UUID),
        (Tier.BOOKKEEPER, Reason.OPEN, opened(4).metadata),
    ]


@pytest.mark.parametrize("namespaces", [[], ["public/other"], ["default/*"]])
def test_without_a_place_it_is_the_brokers(tmp_path: Path, namespaces: list[str]) -> None:
    admin = FakeAdmin(listing([moved(1), opened(2)], "2:9"))
    snapshot = take_snapshot(FakeClients(config(tmp_path, *namespaces), admin), TOPIC)
    assert snapshot.hot[0].tier is Tier.BROKER
    assert snapshot.hot[0].reason.kind is Reason.PULSAR_OFFLOADED


def test_without_a_uuid_it_is_the_brokers(tmp_path: Path) -> None:
    """No name is guessed."""
    admin = FakeAdmin(listing([moved(1, offload=None), opened(2)], "2:9"))
    snapshot = take_snapshot(FakeClients(config(tmp_path, "*/*"), admin), TOPIC)
    assert snapshot.hot[0].tier is Tier.BROKER
    assert snapshot.hot[0].metadata is None


def test_a_token_keeps_the_tier_and_asks_for_the_uuid_again(tmp_path: Path) -> None:
    settings = config(tmp_path, "*/*")
    admin = FakeAdmin(listing([moved(1), sealed(2), opened(3)], "3:9"))
    token = to_token(take_snapshot(FakeClients(settings, admin), TOPIC))
    other = OffloadContext("4a1e9e0e-0000-0000-0000-000000000002")
    now = FakeAdmin(listing([moved(1, offload=other), moved(2), opened(3)], "3:9"))
    found = from_token(now, TOPIC, token)
    assert [(one.tier, one.metadata) for one in found.hot[:2]] == [
        (Tier.TIERED, other),
        (Tier.BOOKKEEPER, UUID),  # read from the objects, as it is listed now
    ]


def test_the_forced_tier_has_all_of_it_or_is_refused(tmp_path: Path) -> None:
    clients = FakeClients(config(tmp_path, "*/*"), FakeAdmin(listing([moved(1), opened(2)], "1:9")))
    assert [one.tier for one in take_snapshot(clients, TOPIC, tiers="tiered").hot] == [Tier.TIERED]
    for ledgers, last in (
        ([moved(1), opened(2)], "2:0"),
        ([moved(1), sealed(2), opened(3)], "2:9"),
    ):
        clients = FakeClients(config(tmp_path, "*/*"), FakeAdmin(listing(ledgers, last)))
        with pytest.raises(NotFoundError, match="does not have ledger 2"):
            take_snapshot(clients, TOPIC, tiers="tiered")


@pytest.mark.parametrize("metadata", [None, sealed(1).metadata])
def test_the_bookies_are_forced_only_where_they_are_read(tmp_path: Path, metadata: Any) -> None:
    """It would be read from the objects, as it is listed."""
    admin = FakeAdmin(listing([moved(1, metadata=metadata), opened(2)], "2:9"))
    with pytest.raises(NotFoundError, match="tiered storage has taken ledger 1"):
        take_snapshot(FakeClients(config(tmp_path, "*/*"), admin), TOPIC, tiers="bookkeeper")


def test_the_last_ledger_of_a_terminated_topic(tmp_path: Path) -> None:
    """Pulsar may have taken that one, too, and lists no metadata then."""
    found = listing([moved(1, entries=0)], "1:9", terminated=True)
    snapshot = take_snapshot(FakeClients(config(tmp_path, "*/*"), FakeAdmin(found)), TOPIC)
    assert [(one.state, one.tier, one.last_entry) for one in snapshot.hot] == [
        ("sealed", Tier.TIERED, 9)
    ]
    assert [one.ledger_id for one in sealed_ledgers(found, -1)] == [1]


def test_splits_are_not_smaller_than_a_block() -> None:
    """One that begins inside of a block is read from the block's beginning on."""
    large = segment(entries=1000, size=200 << 20)
    sizes = {
        tier: [
            one.entries for one in cut_ranges([whole(replace(large, tier=tier))], 1 << 20, 64)[0]
        ]
        for tier in (Tier.BOOKKEEPER, Tier.TIERED)
    }
    assert len(sizes[Tier.BOOKKEEPER]) == 50
    assert len(sizes[Tier.TIERED]) == 4
