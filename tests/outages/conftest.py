"""The cluster of this folder, which ends after the last test here, and what its tests ask of it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from offloader.config import Config, load_config
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import BookieProcess, ProcessCluster
from testbed.publish import quiet_client
from testbed.s3 import S3
from tests.conftest import SPARK, make_first_topic, offload_sealed, unique_name


@pytest.fixture(scope="package")
def servers() -> Iterator[ProcessCluster]:
    """A Pulsar whose servers may be killed or paused. A test brings them back before it ends."""
    with ProcessCluster(bookies=3, max_entries_per_ledger=5_000) as started:
        make_first_topic(started)
        yield started


@pytest.fixture
def bookie(servers: ProcessCluster) -> Iterator[BookieProcess]:
    """A bookie that may be killed or paused. It is back when the test ends."""
    victim = servers.bookies[1]
    yield victim
    victim.resume()
    if not victim.alive:
        victim.start()
    servers.wait_bookies()


@pytest.fixture(scope="package")
def servers_admin(servers: ProcessCluster) -> Iterator[Admin]:
    with Admin(servers.admin_url) as client:
        yield client


@pytest.fixture(scope="package")
def servers_client(servers: ProcessCluster) -> Iterator[Any]:
    """A `pulsar.Client` of the cluster."""
    with quiet_client(servers.service_url) as opened:
        yield opened


@pytest.fixture(scope="package")
def servers_config(
    servers: ProcessCluster, s3: S3, tmp_path_factory: pytest.TempPathFactory
) -> Config:
    return load_config(
        {
            "pulsar": {"service_url": servers.service_url, "admin_url": servers.admin_url},
            "storage": {"uri": f"{s3.uri}/outages", "options": s3.storage_options},
            "offload": {"grace": "0s"},
            "query": {"cache_dir": str(tmp_path_factory.mktemp("ranges"))},
            "spark": SPARK,
        }
    )


@pytest.fixture(scope="package")
def servers_lake(servers_config: Config) -> Iterator[PulsarLake]:
    with PulsarLake(servers_config) as opened:
        yield opened


@pytest.fixture(scope="package")
def servers_offload(servers_config: Config, servers_lake: PulsarLake) -> Callable[[str], None]:
    """Offloads every sealed ledger of a topic, in this process."""
    return lambda topic: offload_sealed(servers_config, servers_lake, topic)


@pytest.fixture(scope="module")
def servers_namespace(request: pytest.FixtureRequest, servers_admin: Admin) -> str:
    """A namespace of the module's own, `public/…`."""
    name = f"public/{unique_name(request)}"
    servers_admin.create_namespace(name)
    return name
