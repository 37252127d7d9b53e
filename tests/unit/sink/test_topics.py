"""Topics that cannot be made: refused before Pulsar is asked for anything."""

import pyarrow as pa
import pytest

from reader.clients import Clients
from reader.config import ReadConfig
from reader.errors import ConfigurationError
from reader.model import Topic
from reader.sink import create_topic, resolve_target

KEY = pa.schema([("__key", pa.string()), ("__TOMBSTONE", pa.bool_())])


@pytest.mark.parametrize(
    ("columns", "kind", "error"),
    [
        (KEY, "AVRO", "a topic of metadata columns alone has no payload"),
        (KEY, "JSON", "a topic of metadata columns alone has no payload"),
        (KEY, "NONE", "a topic of metadata columns alone has no payload"),
        (KEY, "KEY_VALUE", "a topic of metadata columns alone has no payload"),
        (pa.schema([]), "AVRO", "a topic of metadata columns alone has no payload"),
        (pa.schema([("a", pa.binary())]), "NONE",
         "a schema of type BYTES takes the column value, not a"),
        (pa.schema([("value", pa.int64())]), "BYTES",
         "column 'value' is bigint, which its field of type BYTES cannot store"),
        (pa.schema([("a", pa.int64()), ("__LedgerId", pa.int64())]), "AVRO",
         "a topic cannot be made with the column __LedgerId, which Pulsar fills in"),
        (pa.schema([("a", pa.int64()), ("__KEY", pa.int64())]), "AVRO",
         "column __key cannot be written as int64"),
    ],
)  # fmt: skip
def test_columns_that_no_topic_has(columns: pa.Schema, kind: str, error: str) -> None:
    nowhere = {"pulsar": {"admin_url": "http://127.0.0.1:1"}}
    with Clients(ReadConfig.load(nowhere)) as clients:
        with pytest.raises(ConfigurationError) as caught:
            create_topic(clients, Topic("t", "n", "x"), columns, {"schemaType": kind})
    assert caught.value.message == error
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("retentionTime", "90s", "property retentionTime: Pulsar counts it in whole minutes"),
        ("location", "s3://elsewhere", "a topic has no location: it is in Pulsar"),
    ],
)
def test_properties_that_no_topic_has(name: str, value: str, error: str) -> None:
    nowhere = {"pulsar": {"admin_url": "http://127.0.0.1:1"}}
    columns = pa.schema([("a", pa.int64())])
    with Clients(ReadConfig.load(nowhere)) as clients:
        with pytest.raises(ConfigurationError) as caught:
            create_topic(clients, Topic("t", "n", "x"), columns, {name: value})
    assert caught.value.message == error


def test_a_partition_is_no_topic() -> None:
    with Clients(ReadConfig.load({"pulsar": {"admin_url": "http://127.0.0.1:1"}})) as clients:
        with pytest.raises(ConfigurationError, match="is one partition") as caught:
            resolve_target(clients, Topic("t", "n", "x-partition-1"))
    assert caught.value.hint == "name the topic: t/n/x"
