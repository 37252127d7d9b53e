"""Topics whose messages move."""

from __future__ import annotations

import pytest

from offloader.config import Config
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster
from tests.spark.stream.moves import Moves


@pytest.fixture
def moves(
    cluster: Cluster,
    admin: Admin,
    lake: PulsarLake,
    lake_config: Config,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Moves:
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1.2)
    admin.set_retention(namespace, 0, 0)
    return Moves(cluster.service_url, admin, lake_config, lake, f"{namespace}/orders")
