"""A topic's page shows its segments as the plan has them; no server is asked."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from offloader.web.topic_detail import TopicDetail
from reader.clients import Clients
from reader.config import StorageConfig
from reader.errors import NotFoundError
from reader.model import Partition, Topic
from reader.model.reasons import Pruned, Reason, TierReason
from reader.plan.plan import PlannedSegment, make_plan
from reader.plan.snapshot import take_snapshot
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from reader.table import OffloadedLedger
from tests.support.additions import PUBLISHED, addition, open_table
from tests.support.tables import DAY_US, TOPIC, fill, maintainer, now_us, settings

IN_TABLE = "in the table, read from bookkeeper"
OLDER = str(TierReason(Reason.OLDER_COMMIT))
DELETED = str(TierReason(Reason.LOST))


class NoTopic(AdminClient):
    """Pulsar does not know the topic any more: what is left of it is its table."""

    def partitions(self, topic: Topic, *, known: object = ()) -> list[Partition]:
        raise NotFoundError(f"topic {topic} does not exist")


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    """Of a storage that is empty so far."""
    storage = open_storage(StorageConfig(uri=str(tmp_path / "lake")))
    config = settings(storage)
    with NoTopic(config.pulsar) as admin, Clients(config, admin=admin, storage=storage) as made:
        yield made


def fill_with_a_loss(clients: Clients) -> None:
    """Ledgers 1 to 3, and in a commit of its own ledger 5; ledger 4 was lost."""
    fill(clients.storage, [1, 2, 3])
    last = addition(clients.storage, TOPIC, [5], before=3)
    last = replace(last, ledgers=(OffloadedLedger.lost_one(0, 4), *last.ledgers))
    DeltaCommitter(clients.storage).commit(open_table(clients.storage, TOPIC), last)


def forget(clients: Clients) -> None:
    """All commits are cleaned from the log, except the newest."""
    table = open_table(clients.storage, TOPIC)
    table.handle.create_checkpoint()
    for old in sorted(Path(table.uri, "_delta_log").glob("*[0-9].json"))[:-1]:
        old.unlink()


def planned(clients: Clients) -> list[PlannedSegment]:
    """As ``explain``, ``segments`` and the command line show them."""
    return list(make_plan(clients, take_snapshot(clients, TOPIC, checked=False)).segments)


def shown(clients: Clients) -> list[dict[str, Any]]:
    """The blocks of the page."""
    found: list[dict[str, Any]] = TopicDetail(
        clients, "pulsar-lake", dict, lambda topic, found: None
    ).segments(TOPIC)["segments"]
    return found


def both(clients: Clients) -> list[tuple[int, str, str, str]]:
    """(ledger, state, tier, reason) of each segment, of which page and plan say the same."""
    page = [(one["first"], one["state"], one["tier"], one["reason"]) for one in shown(clients)]
    segments = [one.segment for one in planned(clients)]
    assert page == [(one.ledger_id, one.state, one.tier, str(one.reason)) for one in segments]
    return page


def test_of_ledgers_that_the_log_tells_of(clients: Clients) -> None:
    fill_with_a_loss(clients)
    read = [(ledger, "offloaded", "parquet", IN_TABLE) for ledger in (1, 2, 3, 5)]
    assert both(clients) == sorted([*read, (4, "lost", "parquet", DELETED)])
    [lost] = [one for one in planned(clients) if one.pruned is not None]
    assert (lost.segment.ledger_id, lost.pruned and lost.pruned.kind) == (4, Pruned.LOST)


def test_of_ledgers_that_the_log_has_forgotten(clients: Clients) -> None:
    """Nobody knows where they were read from, so nobody says it."""
    fill_with_a_loss(clients)
    forget(clients)
    older = [(ledger, "offloaded", "parquet", OLDER) for ledger in (1, 2, 3)]
    newest = [(4, "lost", "parquet", DELETED), (5, "offloaded", "parquet", IN_TABLE)]
    assert both(clients) == [*older, *newest]
    assert "bookkeeper" not in OLDER
    page, segments = shown(clients)[0], planned(clients)[0].segment
    times = (segments.min_publish_time, segments.max_publish_time)
    assert times == (PUBLISHED, PUBLISHED + 9 * 1001)
    assert (segments.rows, segments.entries) == (page["rows"], 10) == (10, 10)
    # The log's statistics are of whole ms, rounded down and up, and may be cut.
    assert abs(page["published_from"] * 1e6 - times[0]) < 1000
    assert abs(page["published_to"] * 1e6 - times[1]) < 2000
    assert page["closed_at"] is None


def test_a_file_of_several_older_ledgers_is_one_block(clients: Clients) -> None:
    """Only their rows tell them apart, and the page reads none."""
    fill(clients.storage, range(1, 9))
    assert maintainer(clients.storage).maintain(TOPIC).into == 1
    fill(clients.storage, [9])
    forget(clients)
    [file, block] = shown(clients)
    assert (file["first"], file["last"], file["ledgers"], file["rows"]) == (1, 8, None, 80)
    assert (file["state"], file["tier"], file["reason"]) == ("offloaded", "parquet", OLDER)
    assert (block["first"], block["reason"]) == (9, IN_TABLE)
    reasons = {one.segment.ledger_id: str(one.segment.reason) for one in planned(clients)}
    assert reasons == {**dict.fromkeys(range(1, 9), OLDER), 9: IN_TABLE}


def test_that_rows_of_older_ledgers_have_expired(clients: Clients) -> None:
    """Old rows may stay for a tenth of the retention where others of their file are young."""
    now = now_us()
    fill(clients.storage, range(1, 9), published=[now - 31 * DAY_US] * 4 + [now] * 4)
    assert maintainer(clients.storage).maintain(TOPIC).into == 1
    fill(clients.storage, [9], published=[now - 40 * DAY_US])
    assert maintainer(clients.storage, retention="30d").maintain(TOPIC).expired_rows == 10
    fill(clients.storage, [10])
    forget(clients)
    before = open_table(clients.storage, TOPIC).topic_numbers.expired_before
    expired = str(TierReason(Reason.OLDER_COMMIT, expired_before=before))
    assert expired.startswith(f"{OLDER}; rows published before ")
    [file, _] = shown(clients)
    assert (file["last"], file["rows"], file["reason"]) == (8, 80, expired)
    older = [one.segment for one in planned(clients)][:-1]
    assert [one.rows for one in older] == [10] * 8, "they are counted"
    assert [str(one.reason) for one in older] == [expired] * 4 + [OLDER] * 4


def test_a_lost_ledger_was_read_from_nowhere(clients: Clients) -> None:
    fill_with_a_loss(clients)
    newest, oldest = TopicDetail(clients, "pulsar-lake", dict, lambda topic, found: None).commits(
        TOPIC
    )
    assert (newest["ledgers"], newest["rows"], newest["read_from"]) == (2, 10, ["bookkeeper"])
    assert (oldest["ledgers"], oldest["read_from"]) == (3, ["bookkeeper"])
