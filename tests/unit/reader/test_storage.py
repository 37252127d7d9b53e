from __future__ import annotations

import itertools

import pytest

from reader.config import StorageConfig
from reader.errors import ConfigurationError
from reader.model import Topic
from reader.storage import delta_options, s3a_conf, spark_uri, storage_root, table_uri

S3 = {
    "endpoint_url": "http://127.0.0.1:9000",
    "region": "us-east-1",
    "access_key_id": "k",
    "secret_access_key": "s",
    "allow_http": "true",
}


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("/data/lake/", "/data/lake"),
        ("file:///data/lake", "/data/lake"),
        ("s3://b/p/", "s3://b/p"),
        ("s3a://b/p", "s3://b/p"),
        ("gs://b/p", "gs://b/p"),
    ],
)
def test_roots(uri: str, root: str) -> None:
    assert storage_root(StorageConfig(uri=uri)) == root


def test_no_uri_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"storage\.uri is not set"):
        storage_root(StorageConfig())


def test_no_topic_leaves_the_root_or_meets_another() -> None:
    names = ["..", ".", "...", "a/b", "a~2Fb", "../../etc", "a b", "a%20b", "é", "A", "x?y", "~2E"]
    storage = StorageConfig(uri="/lake")
    uris = [
        table_uri(storage, Topic("t", ns, name)) for ns, name in itertools.product(names, names)
    ]
    assert len(set(uris)) == len(uris)
    for uri in uris:
        parts = uri.removeprefix("/lake/").split("/")
        assert len(parts) == 3
        assert not {"..", ".", ""} & set(parts)
        assert uri.isascii()


def test_the_three_clients_get_the_same_endpoint() -> None:
    storage = StorageConfig(uri="s3://b", options=S3)
    delta, spark = delta_options(storage), s3a_conf(storage)
    assert delta["aws_endpoint_url"] == spark["spark.hadoop.fs.s3a.endpoint"] == S3["endpoint_url"]
    assert delta["aws_secret_access_key"] == spark["spark.hadoop.fs.s3a.secret.key"] == "s"
    assert delta["aws_conditional_put"] == "etag"
    assert spark["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert spark["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert spark_uri("s3://b/x") == "s3a://b/x"


def test_a_local_directory_needs_no_options() -> None:
    storage = StorageConfig(uri="/lake", options=S3)
    assert delta_options(storage) == {}
    assert s3a_conf(storage) == {}
