"""A topic whose messages move: from ledgers to files, and from those to compacted ones."""

from offloader.config import Config
from offloader.convert import spark_jobs
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.model import Clocks
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Topic
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.publish import Message, json_schema, publish
from tests.spark.conftest import ORDER, order
from tests.support.tables import now_us, storage_ms

_LATER_MS = 11 * 8_640_000  # 1.1 days


class Moves:
    """Of two partitions, of which Pulsar keeps nothing that is in the table. ``sent``: with ids."""

    def __init__(
        self, service_url: str, admin: Admin, config: Config, lake: PulsarLake, topic: str
    ) -> None:
        self.topic = topic
        self.table = "pulsar.`{}`.{}".format(*topic.rsplit("/", 1))
        self.sent: list[Message] = []
        self._name = admin.create_topic(topic, partitions=2)
        self._url = service_url
        self._admin = admin
        self._lake = lake
        # A file a ledger, so that there is something to compact.
        changed = {"split_bytes": 1, "vacuum_after": "1d"}
        offload = type(config.offload).model_validate(config.offload.model_dump() | changed)
        self._config = config.model_copy(update={"offload": offload})
        for partition in admin.partitions(self._name):
            admin.create_subscription(partition, "pulsar-lake")

    def send(self, count: int) -> None:
        first = len(self.sent)
        values = map(order, range(first, first + count))
        self.sent += publish(
            self._url, self._name, values, schema=json_schema(ORDER), batch=10, ids=True
        )

    def seal(self) -> None:
        self._admin.seal(self._name)

    def add_partition(self) -> None:
        self._admin.grow_partitions(self._name, 1 + len(self._admin.partitions(self._name)))

    def to_compacted_files(self, more: int = 20) -> None:
        """All that there is, so that it is nowhere else; ``more`` messages are sent after it."""
        name = Topic.parse(self._name)
        self.seal()
        with AdminClient(self._config.pulsar) as client:
            offloader = TopicOffloader(
                Clients(self._config, admin=client),
                self._config.offload,
                spark_jobs(lambda: self._lake.spark.sparkContext),
            )
            while offloader.turn(name, now=True).more:
                pass
        self.send(more)
        storage = open_storage(self._config.storage)
        found = TableMaintainer(storage, self._config.offload).maintain(name)
        assert found.compacted >= 2, found
        later = TableMaintainer(
            storage,
            self._config.offload,
            clocks=Clocks(ms=lambda: now_us() // 1000 + _LATER_MS),
            storage_clock_ms=lambda *where: storage_ms(*where) + _LATER_MS,
        )
        assert later.maintain(name, vacuum=True).vacuumed >= found.compacted

        def is_trimmed() -> bool:
            self._admin.trim(self._name)
            ledgers = map(self._admin.ledgers, self._admin.partitions(self._name))
            return all(len(one) == 1 for one in ledgers)

        wait_until("sealed ledgers are deleted", is_trimmed)
