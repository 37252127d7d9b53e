"""What a process keeps from read to read harms nobody: brokers and bookies that restart."""

import pytest

from offloader.config import Config
from reader.clients import Clients
from testbed.admin import Admin
from testbed.cluster import ProcessCluster
from testbed.publish import publish
from tests.integration.test_kept_clients import rows


@pytest.mark.parametrize("tier", ["bookkeeper", "broker"])
def test_servers_that_restart_between_two_reads(
    servers: ProcessCluster,
    servers_admin: Admin,
    servers_config: Config,
    topic_name: str,
    tier: str,
) -> None:
    servers_admin.create_topic(topic_name)
    publish(servers.service_url, topic_name, [b"x"] * 10)
    servers_admin.seal(topic_name)
    with Clients(servers_config) as clients:
        for _ in range(2):
            assert rows(clients, topic_name, tier) == 10
        if tier == "broker":
            servers.restart_broker()
        else:
            for bookie in servers.bookies:
                bookie.kill()
                bookie.start()
        for _ in range(2):
            assert rows(clients, topic_name, tier) == 10
