"""A broker of its own with other settings: digests, and entry metadata that it hides."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from offloader.config import Config, load_config
from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.model import LedgerMetadata, Topic
from reader.model.columns import BROKER_NULLS
from reader.plan.plan import plan_snapshot
from reader.plan.reads import SplitsRead
from reader.plan.snapshot import take_snapshot
from reader.pulsar.admin import AdminClient
from reader.sources.reading import read_rows
from reader.sources.row_format import RowFormat
from testbed.admin import Admin
from testbed.cluster import CompactCluster
from testbed.publish import Message, publish
from tests.contract.rows import rows_of

PASSWORD = "open sesame"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompactCluster]:
    settings = {
        "managedLedgerDigestType": "MAC",  # takes the password
        "managedLedgerPassword": PASSWORD,
        "exposingBrokerEntryMetadataToClientEnabled": False,  # Pulsar's default
    }
    directory = tmp_path_factory.mktemp("digests")
    with CompactCluster(
        1, directory=directory, broker_config=settings, log_level="WARN"
    ) as cluster:
        yield cluster


def _use(cluster: CompactCluster, digest: str) -> None:
    path: Path = cluster.directory / "conf" / "broker.conf"
    lines = path.read_text().splitlines()
    line = f"managedLedgerDigestType={digest}"
    if line not in lines:
        kept = [one for one in lines if not one.startswith("managedLedgerDigestType=")]
        path.write_text("\n".join([*kept, line]) + "\n")
        cluster.restart_broker()


def _config(cluster: CompactCluster, password: str) -> Config:
    urls = {"service_url": cluster.service_url, "admin_url": cluster.admin_url}
    storage = {"uri": str(cluster.directory / "tables")}
    return load_config({"pulsar": urls | {"bookkeeper_password": password}, "storage": storage})


def _read(config: Config, topic: Topic) -> tuple[str, list[tuple[bytes, str | None]]]:
    """The digest of the topic's ledger, and (value, error) of each row."""
    with AdminClient(config.pulsar) as admin:
        snapshot = take_snapshot(Clients(config, admin=admin), topic, tiers="bookkeeper")
    (segment,) = snapshot.hot
    assert isinstance(segment.metadata, LedgerMetadata)
    rows = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
    found = []
    splits = plan_snapshot(snapshot).splits
    with Clients(config) as clients:
        for batch in read_rows(clients, SplitsRead(splits, fall_back=False), rows):
            found += [(row["value"], row["__error"]) for row in batch.to_pylist()]
    return segment.metadata.digest_type, found


@pytest.mark.parametrize("digest", ["MAC", "CRC32", "DUMMY"])
def test_digests(small: CompactCluster, digest: str) -> None:
    _use(small, digest)
    topic = Topic("public", "default", digest.lower())
    values = [b"%d" % number * 50 for number in range(40)]
    publish(small.service_url, topic.full_name, values)
    config = _config(small, PASSWORD)
    assert _read(config, topic) == (digest, [(value, None) for value in values])
    wrong = _config(small, "sesame")
    if digest == "MAC":
        with pytest.raises(ConfigurationError, match="bookkeeper_password"):
            _read(wrong, topic)
    else:
        assert _read(wrong, topic)[1] == [(value, None) for value in values]


def test_only_the_brokers_own_columns_are_null(small: CompactCluster) -> None:
    topic = "persistent://public/default/orders"
    for batch in (0, 3):
        messages = [Message(b"%d" % n, key=f"k{n}", event_time=n + 1) for n in range(7)]
        publish(small.service_url, topic, messages, batch=batch)
    with Admin(small.admin_url) as admin:
        admin.seal(topic)
    config = _config(small, PASSWORD)
    direct, through = (rows_of(config, topic, tier) for tier in ("bookkeeper", "broker"))
    assert len(direct) == 14
    assert all(row[name] is not None for row in direct.values() for name in BROKER_NULLS)
    assert through == {key: row | dict.fromkeys(BROKER_NULLS) for key, row in direct.items()}
