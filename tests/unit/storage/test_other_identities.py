"""An identity of the environment beside the settings': refused, where a client would take it."""

import os
from collections.abc import Iterator

import pytest

from reader.config import StorageConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.storage import Storage, open_storage
from testbed.serving import Asked, HttpAnswer, answering

AZURE = "abfss://box@acc.dfs.core.windows.net/lake"
SECRET = {"client_id": "c", "client_secret": "s", "tenant_id": "t"}


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)


def opened(uri: str, **options: str) -> Storage:
    return open_storage(StorageConfig(uri=uri, options=options))


@pytest.mark.parametrize(
    ("uri", "options", "variable"),
    [
        ("s3://b", {"access_key_id": "k", "secret_access_key": "s"}, "AWS_SESSION_TOKEN"),
        ("s3://b", {}, "AWS_ENDPOINT_URL"),
        ("s3://b", {}, "AWS_ENDPOINT"),
        ("s3://b", {}, "AWS_ENDPOINT_URL_S3"),
        ("s3://b", {"endpoint_url": "https://h"}, "AWS_ENDPOINT_URL_S3"),
        ("gs://b", {"anonymous": "true"}, "GOOGLE_SERVICE_ACCOUNT"),
        ("gs://b", {"service_account_key": "{}"}, "GOOGLE_SERVICE_ACCOUNT_PATH"),
        ("gs://b", {"service_account": "/f"}, "GOOGLE_SERVICE_ACCOUNT_KEY"),
        ("gs://b", {"application_credentials": "/f"}, "GOOGLE_SERVICE_ACCOUNT_KEY"),
        ("gs://b", {}, "GOOGLE_BASE_URL"),
        (AZURE, {"sas_token": "sig=x"}, "AZURE_STORAGE_ACCOUNT_KEY"),
        (AZURE, {"sas_token": "sig=x"}, "AZURE_STORAGE_ACCESS_KEY"),
        (AZURE, SECRET, "AZURE_STORAGE_ACCOUNT_KEY"),
        (AZURE, SECRET, "AZURE_FEDERATED_TOKEN_FILE"),
        (AZURE, SECRET, "AZURE_STORAGE_TOKEN"),
        (AZURE, {"account_key": "a2V5"}, "AZURE_STORAGE_ENDPOINT"),
    ],
)
def test_it_is_refused(
    uri: str, options: dict[str, str], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(uri, **options)
    monkeypatch.setenv(variable, "s3cr3t")
    with pytest.raises(ConfigurationError, match=f"the environment has {variable}") as caught:
        opened(uri, **options)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("uri", "options", "variable"),
    [
        (
            "s3://b",
            {"access_key_id": "k", "secret_access_key": "s", "session_token": "t"},
            "AWS_SESSION_TOKEN",
        ),
        ("s3://b", {}, "AWS_SESSION_TOKEN"),
        ("s3://b", {"endpoint_url": "https://h"}, "AWS_ENDPOINT_URL"),
        ("s3://b", {"endpoint_url": "https://h"}, "AWS_ENDPOINT"),
        ("gs://b", {"service_account": "/f"}, "GOOGLE_SERVICE_ACCOUNT"),
        ("gs://b", {"service_account": "/f"}, "GOOGLE_APPLICATION_CREDENTIALS"),
        ("gs://b", {"anonymous": "false"}, "GOOGLE_SERVICE_ACCOUNT"),
    ],
)
def test_one_that_no_client_would_take(
    uri: str, options: dict[str, str], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "x")
    opened(uri, **options)


def test_nobody_in_particular_is_no_second_identity() -> None:
    storage = opened("gs://b", anonymous="false", service_account="/f")
    assert storage.delta_options()["google_service_account"] == "/f"


@pytest.fixture
def seen() -> Iterator[tuple[str, list[str]]]:
    """The URL of a store that refuses everything, and how each request proved who asks."""
    found: list[str] = []

    def answer(asked: Asked) -> HttpAnswer:
        how = asked.headers.get("Authorization", "").split(":")[0]
        found.append(how or asked.target.partition("?")[2])
        return 403, None, {}

    with answering(answer) as url:
        yield url, found


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [("account_key", "a2V5", "SharedKey acc"), ("sas_token", "?sv=1&sig=x%2B", "sv=1&sig=x%2B")],
)
def test_both_clients_of_azure_go_by_the_settings(
    seen: tuple[str, list[str]],
    option: str,
    value: str,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside all the identities that a pod on Azure may have been given."""
    from deltalake import DeltaTable

    url, found = seen
    for name in ("CLIENT_ID", "CLIENT_SECRET", "TENANT_ID", "FEDERATED_TOKEN_FILE"):
        monkeypatch.setenv(f"AZURE_{name}", "x")
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", url)
    monkeypatch.setenv("AZURE_STORAGE_TOKEN", "x")
    storage = opened(AZURE, **{option: value}, endpoint_url=f"{url}/acc", allow_http="true")
    with pytest.raises(UnavailableError):
        storage.objects().get("x")
    with pytest.raises(OSError):
        DeltaTable(f"{storage.root}/t", storage_options=storage.delta_options())
    assert set(found) == {shown}
    assert len(found) == 2
