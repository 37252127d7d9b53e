"""Committed transactions that a real broker calls aborted after they were offloaded."""

from offloader.config import Config
from offloader.maintenance.table_maintainer import TableMaintainer
from reader.clients import Clients
from reader.model import Partition, Topic
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from tests.contract.against_java import offload_in_thread
from tests.support.transactions.broker_wire import BrokerWire

NAMES = ("kept", "taken back", "never")


def test_rows_that_pulsar_takes_back(
    cluster: Cluster, admin: Admin, topic_name: str, lake_config: Config
) -> None:
    """The coordinator's own command to the broker, which only a superuser may give."""
    admin.create_topic(topic_name)
    topic = Topic.parse(topic_name)
    path = f"/v3/transactions/transactionBufferStats/{topic_name.removeprefix('persistent://')}"
    with Clients(lake_config) as clients, BrokerWire(cluster.service_url) as wire:
        transactions = {name: wire.begin(600_000) for name in NAMES}
        stored = {}
        for number, (name, one) in enumerate(transactions.items(), 1):
            wire.register(one, topic_name)
            wire.producer(topic_name, name, number=number, transactional=True)
            for sequence_id in range(4):
                wire.send(sequence_id, b"row", name=name, number=number, transaction=one)
            stored[name] = [each.position for each in wire.outcomes(4, number)]
        for name, one in transactions.items():
            (wire.abort if name == "never" else wire.commit)(one)

        def maintainer() -> TableMaintainer:
            return TableMaintainer(clients.storage, lake_config.offload, pulsar=clients)

        wait_until("the ends", lambda: admin.request("GET", path)["ongoingTxnSize"] == 0)
        admin.seal(topic_name)
        offload_in_thread(lake_config, topic_name)
        daemon = maintainer()
        assert not daemon.maintain(topic).aborted_rows
        wire.end_on_partition(transactions["taken back"], topic_name, commit=False)
        result = daemon.maintain(topic)
        assert (result.aborted_rows, result.aborted_transactions) == (4, 1)
        assert result.aborted_at is not None
        partition, at = result.aborted_at
        assert (partition, (at.ledger, at.entry)) == (Partition(topic, -1), stored["taken back"][0])
        assert not daemon.maintain(topic).aborted_rows, "it is told of once"
        admin.seal(topic_name)  # the broker still knows when it has loaded the topic again
        assert maintainer().maintain(topic).aborted_rows == 4
        table = clients.newest_table(topic)
        assert table is not None
        assert sum(batch.num_rows for batch in table.batches(["__entryId"])) == 8
