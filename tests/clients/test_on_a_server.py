"""The same through a broker: schemas as it registers them, rows hot and after an offload."""

from collections.abc import Callable
from typing import Any

import pytest

from offloader.config import Config
from reader import open_topic
from testbed.admin import Admin
from testbed.clients import ClientTopic, go_topics, java_topics
from testbed.cluster import Cluster
from tests.clients.comparison import expected, is_same, named_types, schema_of
from tests.clients.tools import skip_without_tools
from tests.unit.payload.cases import shown

pytestmark = pytest.mark.long


@pytest.mark.parametrize("send", [java_topics, go_topics], ids=["java", "go"])
def test_rows_hot_and_cold(
    send: Callable[..., list[ClientTopic]],
    cluster: Cluster,
    admin: Admin,
    lake_config: Config,
    offload: Callable[[str], None],
    lake_namespace: str,
) -> None:
    prefix = f"persistent://{lake_namespace}/{send.__name__}"
    with skip_without_tools():
        topics = send(5, 8, 20, cluster.service_url, prefix)
    for topic in topics:
        hot = _rows(lake_config, topic)
        admin.seal(topic.name)
        offload(topic.name)
        assert _wrong(topic, hot) == _wrong(topic, _rows(lake_config, topic)) == []


def _rows(config: Config, topic: ClientTopic) -> list[dict[str, Any]]:
    with open_topic(config, topic.name) as opened:
        table = opened.scan().read_all()
    table = table.sort_by([("__ledgerId", "ascending"), ("__entryId", "ascending"),
                           ("__batchIndex", "ascending")])  # fmt: skip
    names = [name for name in table.column_names if not name.startswith("__")]
    columns = [shown(table[name].combine_chunks()) for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _wrong(topic: ClientTopic, rows: list[dict[str, Any]]) -> list[str]:
    schema = schema_of(topic)
    names = named_types(schema)
    assert len(rows) == len(topic.messages)
    pairs = [
        (expected(schema, message.value, names), row)
        for message, row in zip(topic.messages, rows, strict=True)
    ]
    return [f"{wanted} {row}" for wanted, row in pairs if not is_same(wanted, row)]
