"""A run with every kind of secret, and then a search for each of them in all that it left."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from offloader.config import Config, load_config
from spark_ext.session.handoff import settings_file
from testbed.s3 import S3
from testbed.security import SecuredCluster
from tests.security.conftest import READER, Orders

STORAGE_SECRET = "the-storages-secret-key"
SESSION = "the-storages-session-token"
LEDGERS = "the-ledgers-password"
OAUTH2 = "the-oauth2-client-secret"


@pytest.fixture
def config(
    secured: SecuredCluster, settings: Callable[..., Config], s3: S3, tmp_path: Path
) -> tuple[Path, list[str]]:
    """A settings file, and the secrets in it."""
    options = s3.storage_options | {"secret_access_key": STORAGE_SECRET, "session_token": SESSION}
    events = tmp_path / "events"
    events.mkdir()
    found = load_config(
        {
            "pulsar": secured.pulsar(READER, bookkeeper_password=LEDGERS),
            "storage": {"uri": f"{s3.uri}/secured", "options": options},
            "query": {"cache_dir": str(tmp_path / "ranges")},
            "spark": {
                "master": "local[1]",
                "conf": {
                    "spark.eventLog.enabled": "true",
                    "spark.eventLog.dir": events.as_uri(),
                    "spark.eventLog.compress": "false",
                },
            },
        }
    )
    token = found.pulsar.auth_token()
    assert token
    path = settings_file(found)
    assert path
    secrets = [token, secured.sasl_password, STORAGE_SECRET, SESSION, LEDGERS]
    assert all(secret in Path(path).read_text() for secret in secrets)
    return Path(path), secrets


def command_lines() -> str:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                found.append((process / "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue  # it has ended
    return "\n".join(found)


def test_secrets_show_nowhere(
    config: tuple[Path, list[str]], orders: Orders, s3: S3, tmp_path: Path
) -> None:
    path, secrets = config
    program = f"""
from spark_ext import PulsarLake
from spark_ext.session.handoff import load_settings
config = load_settings({str(path)!r})
print(config, repr(config), config.model_dump_json(exclude={{"storage": {{"options"}}}}))
with PulsarLake(config) as lake:
    table = "pulsar.`acme/open`.orders"
    print(lake.spark.sql(f"SELECT count(*) FROM {{table}}").collect())
    lake.spark.sql(f"EXPLAIN EXTENDED SELECT * FROM {{table}}").show(truncate=False)
    lake.spark.sql(f"DESCRIBE EXTENDED {{table}}").show(100, truncate=False)
    lake.spark.sql("SET -v").show(10_000, truncate=False)
    for wrong in (f"SELECT nothing FROM {{table}}", "SELECT * FROM pulsar.`acme/hidden`.x"):
        try:
            lake.spark.sql(wrong)
        except Exception as error:
            print(repr(error), error)
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    output = tmp_path / "output"
    seen: set[str] = set()
    with output.open("wb") as file:
        running = subprocess.Popen(
            [sys.executable, "-c", program], stdout=file, stderr=subprocess.STDOUT, env=env
        )
        while running.poll() is None:
            lines = command_lines()
            seen |= {secret for secret in secrets if secret in lines}
            time.sleep(0.1)
    text = output.read_text()
    assert running.returncode == 0, text[-3000:]
    assert f"Row(count(1)={orders.count})" in text
    assert not seen, "on a command line"
    events = [one for one in (tmp_path / "events").rglob("*") if one.is_file()]
    places = {"output": text, **{str(one): one.read_text() for one in events}}
    assert any("SparkListenerEnvironmentUpdate" in one for one in places.values())
    logs = [key for key in s3.keys("secured/") if "_delta_log" in key and key.endswith(".json")]
    assert logs
    for key in logs:
        body = s3.client().get_object(Bucket=s3.bucket, Key=key)["Body"].read()
        places[key] = body.decode()
    shown = {(place, one) for place, text in places.items() for one in secrets if one in text}
    assert not shown


def test_settings_do_not_print_their_secrets() -> None:
    given = {
        "pulsar": {
            "token": "the-token",
            "bookkeeper_password": LEDGERS,
            "oauth2": {"issuer_url": "http://i", "client_id": "c", "client_secret": OAUTH2},
            "bookkeeper": {"sasl_user": "u", "sasl_password": "the-sasl-password"},
        },
        "storage": {"options": {"secret_access_key": STORAGE_SECRET}},
        "http": {"token": "the-token-of-the-page"},
    }
    config = load_config(given)
    shown = f"{config}{config!r}{config.pulsar}{config.pulsar.model_dump_json()}{config.storage!r}"
    shown += f"{config.http!r}{config.http.model_dump_json()}"
    pages = "the-token-of-the-page"
    secrets = ("the-token", LEDGERS, OAUTH2, "the-sasl-password", STORAGE_SECRET, pages)
    assert not [secret for secret in secrets if secret in shown]
    assert all(secret in json.dumps(given) for secret in secrets)
