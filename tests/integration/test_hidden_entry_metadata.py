"""A broker that does not show consumers what it adds to entries, as Pulsar is set by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from offloader.config import load_config
from reader.model.columns import BROKER_NULLS
from testbed.admin import Admin
from testbed.cluster import CompactCluster
from testbed.publish import Message, publish
from tests.contract.test_sources import rows_of


@pytest.mark.long  # a cluster of its own
def test_only_the_brokers_own_columns_are_null(tmp_path: Path) -> None:
    hidden = {"exposingBrokerEntryMetadataToClientEnabled": False}
    topic = "persistent://public/default/orders"
    with (
        CompactCluster(bookies=1, broker_config=hidden) as cluster,
        Admin(cluster.admin_url) as admin,
    ):
        config = load_config(
            {
                "pulsar": {"service_url": cluster.service_url, "admin_url": cluster.admin_url},
                "storage": {"uri": str(tmp_path)},
            }
        )
        for batch in (0, 3):
            messages = [Message(b"%d" % n, key=f"k{n}", event_time=n + 1) for n in range(7)]
            publish(cluster.service_url, topic, messages, batch=batch)
        admin.seal(topic)
        direct = rows_of(config, topic, "bookkeeper")
        through = rows_of(config, topic, "broker")
    assert len(direct) == 14
    assert all(row[name] is not None for row in direct.values() for name in BROKER_NULLS)
    assert through == {key: row | dict.fromkeys(BROKER_NULLS) for key, row in direct.items()}
