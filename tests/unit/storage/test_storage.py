import itertools
from pathlib import Path

import pytest

from reader.config import StorageConfig
from reader.errors import ConfigurationError
from reader.model import Topic
from reader.storage import check_storage_options, open_storage
from reader.table import TopicTable

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
    assert open_storage(StorageConfig(uri=uri)).root == root


def test_no_uri_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"storage\.uri is not set"):
        open_storage(StorageConfig())


@pytest.mark.parametrize("uri", ["s3://", "s3:///p", "s3a:////"])
def test_a_bucket_is_needed(uri: str) -> None:
    with pytest.raises(ConfigurationError, match=r"storage\.uri names no bucket"):
        open_storage(StorageConfig(uri=uri))


def test_no_topic_leaves_the_root_or_meets_another() -> None:
    names = ["..", ".", "...", "a/b", "a~2Fb", "../../etc", "a b", "a%20b", "é", "A", "x?y", "~2E"]
    storage = open_storage(StorageConfig(uri="/lake"))
    uris = [storage.table_uri(Topic("t", ns, name)) for ns, name in itertools.product(names, names)]
    assert len(set(uris)) == len(uris)
    for uri in uris:
        parts = uri.removeprefix("/lake/").split("/")
        assert len(parts) == 3
        assert not {"..", ".", ""} & set(parts)
        assert uri.isascii()


def test_the_three_clients_get_the_same_endpoint() -> None:
    storage = open_storage(StorageConfig(uri="s3://b", options=S3))
    delta, spark = storage.delta_options(), storage.spark_conf()
    assert delta["aws_endpoint_url"] == spark["spark.hadoop.fs.s3a.endpoint"] == S3["endpoint_url"]
    assert delta["aws_secret_access_key"] == spark["spark.hadoop.fs.s3a.secret.key"] == "s"
    assert delta["aws_conditional_put"] == "etag"
    assert spark["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert spark["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert storage.spark_uri("s3://b/x") == "s3a://b/x"


def test_a_local_directory_that_delta_rs_takes_for_another(tmp_path: Path) -> None:
    """Ledgers of Pulsar's tiered storage may lie in one."""
    place = StorageConfig(uri=str(tmp_path / "a%20b"))
    open_storage(place).filesystem()
    with pytest.raises(ConfigurationError, match="a%20b has a %"):
        TopicTable.open(open_storage(place), Topic("t", "n", "x"))
    other = StorageConfig(uri=str(tmp_path / "100%"))
    assert TopicTable.open(open_storage(other), Topic("t", "n", "x")) is None


def test_a_local_directory_needs_no_options() -> None:
    storage = open_storage(StorageConfig(uri="/lake", options=S3))
    assert storage.delta_options() == {}
    assert storage.spark_conf() == {}
    assert storage.spark_uri("/lake/x") == "/lake/x"


@pytest.mark.parametrize("uri", ["s3://b", "s3a://b/p"])
def test_an_unknown_option_is_refused_before_anything_is_read(uri: str) -> None:
    config = StorageConfig(uri=uri, options={"endpoint": "x"})
    for refuse in (check_storage_options, open_storage):
        with pytest.raises(ConfigurationError) as caught:
            refuse(config)
        says = "storage.options: unknown option endpoint (did you mean endpoint_url?)"
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="known options: endpoint_url, region"):
        check_storage_options(config.model_copy(update={"options": {"zzz": "x"}}))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"endpoint_url": "minio:9000"}, "is not a URL with a host"),
        ({"endpoint_url": "127.0.0.1:9000"}, "is not a URL with a host"),
        ({"endpoint_url": "https://"}, "is not a URL with a host"),
        ({"endpoint_url": "http://minio:9000"}, 'allow_http = "true"'),
        ({"endpoint_url": "http://minio:9000", "allow_http": "false"}, 'allow_http = "true"'),
    ],
)
@pytest.mark.parametrize("uri", ["s3://b", "gs://b", "abfss://c@a.dfs.core.windows.net"])
def test_an_endpoint_that_would_reach_one_client_only(
    uri: str, options: dict[str, str], says: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_storage_options(StorageConfig(uri=uri, options=options))
    assert says in str(caught.value)


def test_an_endpoint_of_s3_has_no_path() -> None:
    open_storage(StorageConfig(uri="s3://b", options=S3 | {"endpoint_url": "http://h:1/"}))
    with pytest.raises(ConfigurationError, match="has a path, which pyarrow leaves out"):
        open_storage(StorageConfig(uri="s3://b", options=S3 | {"endpoint_url": "http://h:1/b"}))


def test_other_schemes_have_options_of_their_own() -> None:
    check_storage_options(StorageConfig(uri="memory://b", options={"project": "x"}))
    check_storage_options(StorageConfig(options={"endpoint": "x"}))  # no storage, nothing to check


def test_a_filesystem_is_opened_once(tmp_path: Path) -> None:
    for uri in (str(tmp_path), f"file://{tmp_path}", "memory://lake"):
        storage = open_storage(StorageConfig(uri=uri))
        filesystem, directory = storage.directory(Topic("t", "n", "x"))
        assert directory.endswith("/t/n/x")
        filesystem.create_dir(directory)
        with filesystem.open_output_stream(f"{directory}/one") as sink:
            sink.write(b"1")
        assert storage.filesystem()[0] is filesystem


def test_a_scheme_that_nobody_knows() -> None:
    with pytest.raises(ConfigurationError, match="nowhere:// is not supported here"):
        open_storage(StorageConfig(uri="nowhere://b")).filesystem()
