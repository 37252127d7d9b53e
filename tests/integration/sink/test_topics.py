"""Topics that are made: what Pulsar keeps of them."""

import pyarrow as pa
import pytest

from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.model import Topic
from reader.sink import create_topic
from testbed.admin import Admin, wait_until

COLUMNS = pa.schema([("id", pa.int64())])


@pytest.mark.parametrize("partitions", [0, 2])
@pytest.mark.parametrize(
    ("own", "given", "applied"),
    [
        ((60, 100), {}, (60, 100)),
        ((60, 100), {"retentionTime": "2d"}, (2880, 100)),
        ((60, 100), {"retentionSize": "3g"}, (60, 3072)),
        ((60, 100), {"retentionTime": "2d", "retentionSize": "3g"}, (2880, 3072)),
        ((-1, -1), {"retentionTime": "2d"}, (2880, -1)),
        # One that keeps nothing is no limit of the other.
        ((0, 0), {"retentionTime": "2d"}, (2880, -1)),
        ((0, 0), {"retentionSize": "3g"}, (-1, 3072)),
    ],
)
def test_what_one_property_says_the_namespace_says_of_the_other(
    clients: Clients,
    admin: Admin,
    namespace: str,
    own: tuple[int, int],
    given: dict[str, str],
    applied: tuple[int, int],
    partitions: int,
) -> None:
    admin.set_retention(namespace, *own)
    topic = Topic.parse(f"{namespace}/kept")
    create_topic(clients, topic, COLUMNS, {"partitions": str(partitions), **given})
    # A topic's policies reach its broker a moment later.
    wait_until("the policy", lambda: clients.admin.retention(topic) == applied)


def test_a_topic_that_is_not_made_whole_is_not_there(
    clients: Clients, admin: Admin, namespace: str
) -> None:
    topic = Topic.parse(f"{namespace}/none")
    with pytest.raises(ConfigurationError, match="etention"):
        create_topic(clients, topic, COLUMNS, {"retentionTime": "0s", "retentionSize": "3g"})
    assert admin.request("GET", f"/v2/persistent/{namespace}") == []
