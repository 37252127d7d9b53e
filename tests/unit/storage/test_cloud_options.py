"""Options of GCS, Azure and HDFS: what delta-rs and Spark are told, and what is refused."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from reader.config import ReadConfig, StorageConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Topic
from reader.storage import Storage, check_storage_options, open_storage

HOST = "acc.dfs.core.windows.net"
AZURE = f"abfss://box@{HOST}/lake"
KEY = {
    "type": "service_account",
    "client_email": "me@example",
    "private_key_id": "7",
    "private_key": "PR1VATE",
}


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No identity of the machine's own."""
    for name in list(os.environ):
        if name.startswith(("AZURE_", "GOOGLE_", "HADOOP_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def opened(uri: str, **options: str) -> Storage:
    return open_storage(StorageConfig(uri=uri, options=options))


def spark(storage: Storage, prefix: str) -> dict[str, str]:
    """Spark's settings without what all of them begin with."""
    found = {}
    for name, value in storage.spark_conf().items():
        assert name.startswith(f"spark.hadoop.{prefix}")
        found[name.removeprefix(f"spark.hadoop.{prefix}")] = value
    return found


@pytest.mark.parametrize(
    ("uri", "root", "path"),
    [
        ("gs://b/p/q/", "gs://b/p/q", "b/p/q"),
        ("gs://b", "gs://b", "b"),
        (f"{AZURE}/p/", f"{AZURE}/p", "box/lake/p"),
        (f"abfs://box@{HOST}", f"abfss://box@{HOST}", "box"),
        ("abfss://box@ACC.blob.core.windows.net/p", f"abfss://box@{HOST}/p", "box/p"),
        ("hdfs://nn:8020/lake/", "hdfs://nn:8020/lake", "/lake"),
        ("hdfs://nn:8020", "hdfs://nn:8020", ""),
    ],
)
def test_roots(uri: str, root: str, path: str) -> None:
    storage = opened(uri, **({"account_key": "a2V5"} if uri.startswith("abfs") else {}))
    assert storage.root == root
    if uri.startswith("gs"):
        storage = opened(uri, anonymous="true")
    assert storage.filesystem()[1] == path


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("gs:///p", "names no bucket"),
        ("abfss://box/p", "names no container of an account"),
        ("abfss://acc.dfs.core.windows.net/p", "names no container of an account"),
        ("abfss://box@acc.dfs.core.example/p", "names no container of an account"),
        ("hdfs:///p", "names no NameNode"),
        ("hdfs://me@nn:8020/p", "has a user"),
        ("hdfs://nameservice/p", "cannot use the storage at hdfs://nameservice"),
        ("hdfs://nn:8020/my lake", "delta-rs cannot name on HDFS"),
        ("hdfs://nn:8020/s\u00e9", "delta-rs cannot name on HDFS"),
        ("hdfs://nn:8020/a:b", "delta-rs cannot name on HDFS"),
        ("hdfs://nn:8020/a{b}", "delta-rs cannot name on HDFS"),
        *((f"{root}/a//b", "has a part that") for root in ("s3://b", "gs://b", AZURE, "hdfs://nn")),
        *((f"{root}/a/../b", "has a part that") for root in ("s3://b", "gs://b", "hdfs://nn")),
        *((f"{root}/a%20b", "has a %") for root in ("s3://b", "gs://b", AZURE, "hdfs://nn")),
    ],
)
def test_a_place_that_is_none(uri: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        opened(uri).objects()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("uri", "option", "meant"),
    [
        ("gs://b", "endpoint", "endpoint_url"),
        ("gs://b", "service_acount_key", "service_account_key"),
        (AZURE, "acount_key", "account_key"),
        (AZURE, "sas_key", "sas_token"),
        ("hdfs://nn", "user", "user_name"),
        ("hdfs://nn", "config_dir", "conf_dir"),
    ],
)
def test_unknown_options(uri: str, option: str, meant: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_storage_options(StorageConfig(uri=uri, options={option: "x"}))
    assert f"unknown option {option} (did you mean {meant}?)" in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "options", "says"),
    [
        ("gs://b", {"service_account": "f", "service_account_key": "{}"}, "two identities"),
        (AZURE, {"account_key": "a", "sas_token": "b"}, "two identities"),
        (AZURE, {"client_secret": "a"}, "needs client_id and tenant_id as well"),
        (AZURE, {"federated_token_file": "a", "tenant_id": "t"}, "needs client_id as well"),
    ],
)
def test_identities_that_are_none(uri: str, options: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        opened(uri, **options)


# -- GCS -------------------------------------------------------------------------------------------


def test_one_endpoint_for_all_clients_of_gcs() -> None:
    storage = opened("gs://b", endpoint_url="http://h:1/", anonymous="true", allow_http="yes")
    delta = storage.delta_options()
    assert delta["google_base_url"] == "http://h:1"
    assert delta["allow_http"] == "true"
    assert json.loads(delta["google_service_account_key"])["disable_oauth"] is True
    conf = spark(storage, "fs.gs.")
    assert conf["storage.root.url"] == "http://h:1/"
    assert conf["auth.null.enable"] == "true"
    assert storage.spark_uri("gs://b/t") == "gs://b/t"
    assert storage.place == "gs://b at http://h:1/"


def test_sizes_of_the_connector_are_plain_numbers() -> None:
    """Hadoop's defaults for them ("64m") kill the connector that is a few years older."""
    conf = spark(opened("gs://b", anonymous="true"), "fs.gs.")
    sizes = {name: value for name, value in conf.items() if name.endswith(("size", "limit"))}
    assert len(sizes) > 5
    assert all(value.isdigit() for value in sizes.values())


def test_sparks_clients_do_not_wait_for_minutes_either() -> None:
    """By default a query of a dead endpoint says nothing for a quarter of an hour."""
    assert spark(opened("gs://b", anonymous="true"), "fs.gs.")["http.max.retry"] == "4"
    conf = spark(opened(AZURE, account_key="a2V5"), "fs.azure.")
    assert conf["io.retry.max.retries"] == "5"
    assert conf["io.retry.max.backoff.interval"] == "5000"
    assert spark(opened("s3://b"), "fs.s3a.")["retry.limit"] == "4"


def test_a_key_as_text() -> None:
    storage = opened("gs://b", service_account_key=json.dumps(KEY))
    assert json.loads(storage.delta_options()["google_service_account_key"]) == KEY
    conf = spark(storage, "fs.gs.")
    assert conf["auth.service.account.email"] == "me@example"
    assert conf["auth.service.account.private.key"] == "PR1VATE"
    assert conf["auth.service.account.private.key.id"] == "7"


def test_a_key_as_text_that_is_none() -> None:
    with pytest.raises(ConfigurationError, match="is no JSON object") as caught:
        opened("gs://b", service_account_key="PR1VATE").spark_conf()
    assert "PR1VATE" not in str(caught.value)
    with pytest.raises(ConfigurationError) as caught:
        opened("gs://b", service_account_key='{"private_key": "PR1VATE"').objects()
    assert "PR1VATE" not in f"{caught.value} {caught.value.__cause__}"


def test_a_key_as_text_comes_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "PULSAR_LAKE__STORAGE__OPTIONS__SERVICE_ACCOUNT_KEY"
    monkeypatch.setenv(name, json.dumps(KEY))
    found = ReadConfig.load({"storage": {"uri": "gs://b"}}).storage.options
    assert json.loads(found["service_account_key"]) == KEY


@pytest.mark.parametrize("way", ["option", "environment", "gcloud"])
def test_application_default_credentials(
    way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / ".config" / "gcloud" / "application_default_credentials.json"
    file.parent.mkdir(parents=True)
    person = {"type": "authorized_user", "client_id": "c", "client_secret": "s3c",
              "refresh_token": "r3f"}  # fmt: skip
    file.write_text(json.dumps(person))
    options = {}
    if way != "gcloud":
        file = file.rename(tmp_path / "elsewhere.json")
    if way == "option":
        options["application_credentials"] = str(file)
    elif way == "environment":
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    conf = spark(opened("gs://b", **options), "fs.gs.")
    assert conf["auth.client.id"] == "c"
    assert conf["auth.client.secret"] == "s3c"
    assert conf["auth.refresh.token"] == "r3f"
    file.write_text(json.dumps(KEY))
    conf = spark(opened("gs://b", **options), "fs.gs.")
    assert conf["auth.service.account.json.keyfile"] == str(file)


def test_a_machine_in_the_cloud_is_asked_who_it_is() -> None:
    assert not [one for one in spark(opened("gs://b"), "fs.gs.") if one.startswith("auth.")]
    conf = spark(opened(AZURE), "fs.azure.")
    assert conf[f"account.oauth.provider.type.{HOST}"].endswith("MsiTokenProvider")
    assert "azure_storage_account_key" not in opened(AZURE).delta_options()


# -- Azure -----------------------------------------------------------------------------------------


def test_one_endpoint_for_all_clients_of_azure() -> None:
    endpoint = "http://127.0.0.1:10000/acc"
    storage = opened(AZURE, endpoint_url=endpoint, account_key="a2V5", allow_http="true")
    delta = storage.delta_options()
    assert delta["azure_storage_endpoint"] == endpoint
    assert delta["azure_storage_account_name"] == "acc"
    assert delta["azure_storage_account_key"] == "a2V5"
    conf = spark(storage, "fs.azure.")
    assert conf["abfs.endpoint"] == "127.0.0.1:10000"
    assert conf["always.use.https"] == "false"
    assert conf[f"account.key.{HOST}"] == "a2V5"
    assert storage.spark_uri(f"{AZURE}/t") == f"abfs://box@{HOST}/lake/t"
    assert opened(AZURE, account_key="a2V5").spark_uri(f"{AZURE}/t") == f"{AZURE}/t"


@pytest.mark.parametrize(
    ("option", "says"), [("account_key", "is no base64"), ("sas_token", "is no sv=")]
)
def test_a_key_of_azure_that_is_none(option: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        opened(AZURE, **{option: "PR1VATE!"}).objects()
    assert caught.value.hint
    assert "PR1VATE" not in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize(
    ("options", "delta", "conf"),
    [
        (
            {"sas_token": "?sv=1&sig=x"},
            {"azure_storage_sas_key": "?sv=1&sig=x"},
            {"account.auth.type": "SAS", "sas.fixed.token": "sv=1&sig=x"},
        ),
        (
            {"client_id": "c", "client_secret": "s", "tenant_id": "t"},
            {
                "azure_storage_client_id": "c",
                "azure_storage_client_secret": "s",
                "azure_storage_tenant_id": "t",
            },
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2."
                "ClientCredsTokenProvider",
                "account.oauth2.client.endpoint": "https://login.microsoftonline.com/t/oauth2/token",
                "account.oauth2.client.id": "c",
                "account.oauth2.client.secret": "s",
            },
        ),
        (
            {"client_id": "c", "federated_token_file": "/f", "tenant_id": "t",
             "authority_host": "https://login.example/"},
            {
                "azure_storage_client_id": "c",
                "azure_federated_token_file": "/f",
                "azure_storage_tenant_id": "t",
                "azure_storage_authority_host": "https://login.example/",
            },
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2."
                "WorkloadIdentityTokenProvider",
                "account.oauth2.msi.authority": "https://login.example/",
                "account.oauth2.msi.tenant": "t",
                "account.oauth2.client.id": "c",
                "account.oauth2.token.file": "/f",
            },
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", ["options", "environment"])
def test_identities_on_azure(
    options: dict[str, str],
    delta: dict[str, str],
    conf: dict[str, str],
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the settings, or from the environment that delta-rs reads as well."""
    if way == "environment":
        for name, value in options.items():
            variable = f"AZURE_{name.upper()}".replace("AZURE_SAS", "AZURE_STORAGE_SAS")
            monkeypatch.setenv(variable, value)
        options = {}
    storage = opened(AZURE, **options)
    given = {n: v for n, v in storage.delta_options().items() if n.startswith("azure_")}
    assert given == delta | {"azure_storage_account_name": "acc"}
    found = {
        name.removesuffix(f".{HOST}"): value
        for name, value in spark(storage, "fs.azure.").items()
        if name.endswith(HOST)
    }
    assert found == conf


# -- HDFS ------------------------------------------------------------------------------------------


def properties(**found: str) -> str:
    rows = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in found.items())
    return f"<configuration>{''.join(rows)}</configuration>"


@pytest.mark.parametrize("way", ["option", "environment"])
def test_hadoops_configuration(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "core-site.xml").write_text(
        properties(**{"fs.defaultFS": "hdfs://old", "ssl.server.keystore": "x"})
    )
    names = {
        "fs.defaultFS": "hdfs://ns",
        "dfs.ha.namenodes.ns": "a,b",
        "dfs.namenode.rpc-address.ns.a": "h:8020",
        "hadoop.security.group.mapping.ldap.bind.password": "s3c",
        "dfs.client.failover.max.attempts": "9",
    }
    (tmp_path / "hdfs-site.xml").write_text(properties(**names))
    options = {"conf_dir": str(tmp_path)} if way == "option" else {}
    if way == "environment":
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    storage = opened("hdfs://ns/p", **options)
    expected = {n: v for n, v in names.items() if "password" not in n}
    patience = {"dfs.client.failover.sleep.max.millis": "3000"}
    assert storage.delta_options() == patience | expected
    assert spark(storage, "") == expected


def test_a_namenode_that_is_gone_is_told_soon(tmp_path: Path) -> None:
    assert opened("hdfs://nn").delta_options() == {
        "dfs.client.failover.max.attempts": "6",
        "dfs.client.failover.sleep.max.millis": "3000",
    }
    assert opened("hdfs://nn").spark_conf() == {}
    objects = opened("hdfs://127.0.0.1:9/p", conf_dir=str(_once(tmp_path))).objects()
    with pytest.raises(UnavailableError, match="refused"):
        objects.get("x")


def test_a_namenode_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections, and no more: hdfs-native and delta-rs wait for it for ever."""
    from reader.storage.stores import hdfs_client
    from reader.table import TopicTable

    monkeypatch.setattr(hdfs_client, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        storage = opened(f"hdfs://127.0.0.1:{silent.getsockname()[1]}/p")
        acts: tuple[Callable[[], object], ...] = (
            lambda: storage.objects().get("x"),
            lambda: storage.objects().put("x", b""),
            lambda: storage.objects().below("x"),
            lambda: storage.objects().delete(["x"]),
            storage.require_exclusive_put,
            lambda: TopicTable.open(storage, Topic("public", "default", "x")),
        )
        for act in acts:
            with pytest.raises(UnavailableError, match="HDFS has not answered for 0 s"):
                act()


def _once(folder: Path) -> Path:
    names = {"dfs.client.failover.max.attempts": "1"}
    (folder / "hdfs-site.xml").write_text(properties(**names))
    return folder


def test_a_configuration_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert opened("hdfs://nn").spark_conf() == {}
    with pytest.raises(ConfigurationError, match=r"neither core-site\.xml nor"):
        opened("hdfs://nn", conf_dir=str(tmp_path))
    (tmp_path / "core-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigurationError, match="it is no XML"):
        opened("hdfs://nn", conf_dir=str(tmp_path))


def test_a_process_has_one_user_on_hdfs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")  # so that it is put back
    monkeypatch.delenv("HADOOP_USER_NAME")
    opened("hdfs://nn", user_name="ann")
    opened("hdfs://nn", user_name="ann")
    assert os.environ["HADOOP_USER_NAME"] == "ann"
    with pytest.raises(ConfigurationError, match="a process has one user on HDFS"):
        opened("hdfs://nn", user_name="bob")


# -- secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "options", "secret"),
    [
        (AZURE, {"account_key": "c2VjcmV0"}, "c2VjcmV0"),
        (AZURE, {"sas_token": "sv=1&sig=s3cr3t"}, "s3cr3t"),
        (AZURE, {"client_id": "c", "client_secret": "s3cr3t", "tenant_id": "t",
                 "authority_host": "http://127.0.0.1:9"}, "s3cr3t"),
    ],
)  # fmt: skip
def test_no_error_shows_a_secret(uri: str, options: dict[str, str], secret: str) -> None:
    from deltalake import DeltaTable

    storage = opened(uri, **options, endpoint_url="http://127.0.0.1:9/acc", allow_http="true")
    shown = [repr(storage.config), storage.place]
    with pytest.raises(UnavailableError) as caught:
        storage.objects().get("x")
    error: BaseException | None = caught.value
    while error is not None:
        shown.append(f"{error} {error!r}")
        error = error.__cause__
    with pytest.raises(OSError) as delta:
        impatient = {"max_retries": "0"}
        DeltaTable(f"{storage.root}/t", storage_options=storage.delta_options() | impatient)
    shown.append(str(delta.value))
    assert secret not in " ".join(shown)
