"""What a process keeps from read to read harms nobody: topics that are deleted.

`tests/outages/test_kept_clients.py` has brokers and bookies that restart.
"""

from collections.abc import Iterator

import pytest

from offloader.config import Config
from reader.clients import Clients
from reader.model import Topic
from reader.plan.plan import plan_snapshot
from reader.plan.reads import SplitsRead
from reader.plan.snapshot import take_snapshot
from reader.sources.reading import read_rows
from reader.sources.row_format import RowFormat
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import publish


@pytest.fixture
def clients(lake_config: Config) -> Iterator[Clients]:
    with Clients(lake_config) as opened:
        yield opened


def rows(clients: Clients, topic: str, tier: str) -> int:
    snapshot = take_snapshot(clients, Topic.parse(topic), tiers=tier)
    wanted = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
    batches = read_rows(
        clients, SplitsRead(plan_snapshot(snapshot).splits, fall_back=False), wanted
    )
    return sum(batch.num_rows for batch in batches)


def test_a_topic_is_released_after_its_read(
    cluster: Cluster, admin: Admin, clients: Clients, topic_name: str
) -> None:
    for round_ in range(3):
        name = f"{topic_name}-{round_}"
        admin.create_topic(name)
        publish(cluster.service_url, name, [b"x"] * 10)
        assert rows(clients, name, "broker") == 10
        admin.wait_for_subscriptions(name, [])
        admin.request("DELETE", f"/v2/persistent/{name.partition('://')[2]}")  # nobody reads it
