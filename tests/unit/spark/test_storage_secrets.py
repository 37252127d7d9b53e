"""What Spark shows of a storage's settings: nothing that opens it."""

import json
import re

import pytest

from reader.config import StorageConfig
from reader.storage import open_storage
from spark_ext.session.builder import REDACTED

AZURE = "abfss://box@acc.dfs.core.windows.net/lake"
SECRET = "bm9ib2R5IHNlZXMgdGhpcw"


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://b", {"access_key_id": SECRET, "secret_access_key": SECRET, "session_token": SECRET}),
        (AZURE, {"account_key": SECRET}),
        (AZURE, {"sas_token": f"sv=1&sig={SECRET}"}),
        (AZURE, {"client_id": "c", "client_secret": SECRET, "tenant_id": "t"}),
        (
            "gs://b",
            {
                "service_account_key": json.dumps(
                    {"client_email": "e", "private_key": SECRET, "private_key_id": SECRET}
                )
            },
        ),
    ],
)
def test_each_setting_with_a_secret_is_redacted(uri: str, options: dict[str, str]) -> None:
    """By the expression that Spark's UI goes by, and what is left out of the command line."""
    conf = open_storage(StorageConfig(uri=uri, options=options)).spark_conf()
    secret = {name for name, value in conf.items() if SECRET in value}
    assert secret
    assert {name for name in secret if not re.search(REDACTED, name)} == set()


def test_the_rest_is_shown() -> None:
    for uri in ("gs://b", AZURE):
        shown = [n for n in open_storage(StorageConfig(uri=uri)).spark_conf() if "auth" in n]
        assert not [name for name in shown if re.search(REDACTED, name)]
