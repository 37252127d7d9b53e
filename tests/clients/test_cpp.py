"""KeyValue messages of the C++ client, through a broker: rows hot and after an offload."""

import pytest

from offloader.config import Config
from reader import open_topic
from testbed.admin import Admin
from testbed.clients import cpp_topics
from testbed.cluster import Cluster
from tests.clients.tools import skip_without_tools
from tests.support.fixtures import Offload

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_hot_and_cold(
    seed: int,
    cluster: Cluster,
    admin: Admin,
    lake_config: Config,
    offload: Offload,
    lake_namespace: str,
) -> None:
    prefix = f"persistent://{lake_namespace}/cpp-{seed}"
    with skip_without_tools():
        topics = cpp_topics(seed, 40, cluster.service_url, prefix)
    for topic in topics:
        assert all(read == sent for read, sent in topic.read)
        hot = _rows(lake_config, topic.name)
        admin.seal(topic.name)
        offload(topic.name)
        wanted = [
            (*pair, None if topic.encoding == "INLINE" else _problem(key))
            for pair, ((key, _), _) in zip(topic.sent, topic.read, strict=True)
        ]
        assert wanted == hot == _rows(lake_config, topic.name)


def _problem(key: bytes) -> str | None:
    """Return why `__key` cannot show a message's key, which the column `key` has all the same."""
    try:
        key.decode()
    except UnicodeDecodeError:
        return "key is not UTF-8"
    return None


def _rows(config: Config, topic: str) -> list[tuple[object, ...]]:
    """Return keys, values and problems in the order of publishing."""
    with open_topic(config, topic) as opened:
        table = opened.scan().read_all()
    places = [(name, "ascending") for name in ("__ledgerId", "__entryId", "__batchIndex")]
    rows = table.sort_by(places).to_pylist()
    return [(row["key"], row["value"], row["__error"]) for row in rows]
