"""A topic on both sides, and the settings of a process of its own."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from offloader.config import Config
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from tests.contract.against_java import offload_in_thread

_COUNTRY = {"name": "country", "type": ["null", "string"], "default": None}
_SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "price", "type": ["null", "double"], "default": None},
        {
            "name": "at",
            "type": ["null", {"type": "record", "name": "At", "fields": [_COUNTRY]}],
            "default": None,
        },
    ],
}


def _order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": None if number % 7 == 0 else f"n{number}",
        "price": None if number % 5 == 0 else number / 3,
        "at": None if number % 3 == 0 else {"country": "FR" if number % 2 else None},
    }


@pytest.fixture(scope="module")
def orders(cluster: Cluster, admin: Admin, lake_config: Config, lake_namespace: str) -> str:
    """600 in two partitions: some offloaded in two ledgers each, some sealed, some in open ones."""
    topic = admin.create_topic(f"{lake_namespace}/orders", partitions=2)
    for first in (0, 100, 200, 400):
        rows = (_order(n) for n in range(first, first + (100 if first < 200 else 200)))
        publish(cluster.service_url, topic, rows, schema=json_schema(_SCHEMA), batch=10)
        if first < 400:
            admin.seal(topic)
        if first == 100:
            offload_in_thread(lake_config, topic)
    return topic


@pytest.fixture(scope="session")
def environment(lake_config: Config) -> dict[str, str]:
    """In which a process needs no settings file."""
    return {
        **os.environ,
        "PULSAR_LAKE__PULSAR__SERVICE_URL": lake_config.pulsar.service_url,
        "PULSAR_LAKE__PULSAR__ADMIN_URL": lake_config.pulsar.admin_url,
        "PULSAR_LAKE__STORAGE__URI": lake_config.storage.uri,
        "PULSAR_LAKE__STORAGE__OPTIONS": json.dumps(lake_config.storage.options),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


@pytest.fixture(scope="session")
def settings_path(lake_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings as a file."""
    sections = {
        "pulsar": {
            "service_url": lake_config.pulsar.service_url,
            "admin_url": lake_config.pulsar.admin_url,
        },
        "storage": {"uri": lake_config.storage.uri},
        "storage.options": lake_config.storage.options,
    }
    lines = []
    for name, keys in sections.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    path = tmp_path_factory.mktemp("settings") / "lake.toml"
    path.write_text("\n".join(lines))
    return path
