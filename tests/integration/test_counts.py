"""count(*) over hot ledgers: from batches the first time, from what was learned after that."""

import pyarrow as pa

from offloader.config import Config
from reader.clients import Clients
from reader.model import Topic
from reader.plan.reads import CountRead, Read, SplitsRead
from reader.plan.snapshot import take_snapshot
from reader.pulsar.admin import AdminClient
from reader.sources.row_format import RowFormat
from spark_ext.datasource.tasks import TaskFormat, plan_tasks, read_task
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import publish


def count(config: Config, topic: str, names: tuple[str, ...] = ()) -> tuple[int, tuple[Read, ...]]:
    """(rows, reads) of a query for these columns, through the reader as Spark's tasks have it."""
    with AdminClient(config.pulsar) as client:
        snapshot = take_snapshot(Clients(config, admin=client), Topic.parse(topic))
    columns = pa.schema([snapshot.columns.field(name) for name in names])
    form = TaskFormat(config, RowFormat(snapshot.fields, snapshot.schemas, columns))
    reads = plan_tasks(Clients(config), snapshot, names)
    return sum(b.num_rows for read in reads for b in read_task(form, read)), reads


def splits_of(reads: tuple[Read, ...]) -> int:
    return sum(len(read.splits) for read in reads if isinstance(read, SplitsRead))


def test_counts_are_learned_once(
    cluster: Cluster, admin: Admin, lake_config: Config, topic_name: str
) -> None:
    for step in range(3):
        messages = [b"message %d" % n for n in range(100 + step)]
        publish(cluster.service_url, topic_name, messages, batch=[0, 7, 50][step])
        admin.seal(topic_name)
    total, reads = count(lake_config, topic_name)
    assert total == 303
    assert splits_of(reads) == 3
    # No bookie would answer: nothing of the sealed ledgers is read any more.
    nowhere = dict.fromkeys((one.address for one in cluster.bookies), "127.0.0.1:1")
    pulsar = lake_config.pulsar.model_copy(update={"bookies": nowhere})
    deaf = lake_config.model_copy(update={"pulsar": pulsar})
    assert count(deaf, topic_name) == (303, (CountRead(303),))
    publish(cluster.service_url, topic_name, [b"x"] * 5)
    total, reads = count(lake_config, topic_name)
    assert total == 308
    assert splits_of(reads) == 1
    assert count(lake_config, topic_name, ("__publishTime",))[0] == 308
