"""The broker restarts while entries are read through it."""

from offloader.config import Config
from reader.model import Partition
from reader.pulsar.admin import AdminClient
from reader.pulsar.binary import BrokerClient
from testbed.admin import Admin
from testbed.cluster import ProcessCluster
from testbed.publish import publish
from tests.integration.test_broker_entries import of_bookies, of_broker


def test_a_broker_that_restarts_in_the_middle(
    servers: ProcessCluster, servers_admin: Admin, servers_config: Config, topic_name: str
) -> None:
    partition = Partition.parse(topic_name)
    pulsar = servers_config.pulsar
    with AdminClient(pulsar) as rest, BrokerClient(pulsar) as broker:
        servers_admin.create_topic(topic_name)
        publish(servers.service_url, topic_name, (b"%d" % n * 100 for n in range(12_000)))
        stored = of_bookies(rest, partition)
        restarts = iter([servers.restart_broker])

        def restart(seen: int) -> None:
            if seen >= len(stored) // 2:
                next(restarts, lambda: None)()

        assert of_broker(broker, partition, stored, block_bytes=64 << 10, between=restart) == stored
