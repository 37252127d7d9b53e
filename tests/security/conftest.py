"""The secured cluster, which ends after the last test here, and what every test asks of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pulsar
import pytest

from offloader.config import Config, load_config
from offloader.convert import spark_jobs
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Topic
from reader.pulsar.admin import AdminClient
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.publish import publish, quiet_client
from testbed.s3 import S3
from testbed.security import SecuredCluster

READER = "lake"
"""The role of offloader and queries: it may consume in `acme/open`, and that is all."""


@pytest.fixture(scope="package")
def secured() -> Iterator[SecuredCluster]:
    with SecuredCluster() as started:
        yield started


@pytest.fixture(scope="package")
def superuser(secured: SecuredCluster) -> Iterator[Admin]:
    """Tenant `acme`: namespace `open` for the reader, and for a producer; `hidden` for nobody."""
    with secured.admin() as admin:
        body = {"adminRoles": ["acme-admin"], "allowedClusters": [secured.name]}
        admin.request("PUT", "/v2/tenants/acme", json=body)
        for name in ("acme/open", "acme/hidden"):
            admin.create_namespace(name)
        admin.grant("acme/open", READER, "consume")
        admin.grant("acme/open", "reader", "consume")  # a certificate's common name
        admin.grant("acme/open", "writer", "produce")
        yield admin


@pytest.fixture(scope="package")
def writer(secured: SecuredCluster, superuser: Admin) -> Iterator[Any]:
    """A `pulsar.Client` of the superuser."""
    with quiet_client(
        secured.service_url,
        authentication=pulsar.AuthenticationToken(secured.token("superuser")),
        tls_trust_certs_file_path=str(secured.authority.certificate),
        tls_validate_hostname=True,
    ) as client:
        yield client


@pytest.fixture(scope="package")
def settings(
    secured: SecuredCluster, s3: S3, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Config]:
    """`settings(role, **pulsar)`: as a user of that role has them; role None: no token."""
    cache = str(tmp_path_factory.mktemp("ranges"))

    def make(role: str | None, **more: Any) -> Config:
        return load_config(
            {
                "pulsar": secured.pulsar(role, **more),
                "storage": {"uri": f"{s3.uri}/secured", "options": s3.storage_options},
                "offload": {"grace": "0s"},
                "query": {"cache_dir": cache},
                "spark": {"master": "local[2]"},
            }
        )

    return make


@dataclass(frozen=True, slots=True)
class Orders:
    """A topic with 60 messages: 40 offloaded, then 10 sealed, then 10 in the open ledger."""

    topic: str
    count: int = 60


@pytest.fixture(scope="package")
def orders(
    superuser: Admin, writer: Any, settings: Callable[..., Config], lake: PulsarLake
) -> Orders:
    """Offloaded with the reader's role: what the documentation says it needs has to do."""
    topic = superuser.create_topic("acme/open/orders", partitions=2)
    config = settings(READER)
    with AdminClient(config.pulsar) as client:
        offloader = TopicOffloader(
            Clients(config, admin=client),
            config.offload,
            spark_jobs(lambda: lake.spark.sparkContext),
        )
        publish(writer, topic, (b"%d" % n for n in range(40)))
        superuser.seal(topic)
        offloader.turn(Topic.parse(topic), now=True)
    publish(writer, topic, (b"%d" % n for n in range(10)))
    superuser.seal(topic)
    publish(writer, topic, (b"%d" % n for n in range(10)))
    return Orders(topic)
