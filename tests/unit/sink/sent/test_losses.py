"""What was lost before a write was decided is no concern of that write; what lies behind may be."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction

from reader.clients import Clients
from reader.config import ReadConfig
from reader.errors import ConfigurationError
from reader.model import Partition, Position
from reader.plan import take_snapshot
from reader.pulsar import TABLE_ID_KEY, TABLE_KEY, WATERMARK_KEY, PartitionLedgers
from reader.scan import read_behind
from reader.scan.behind import RowsBehind
from reader.table import PartitionNumbers, TopicNumbers
from tests.unit.plan import test_snapshot

LISTED = test_snapshot.listing(
    [test_snapshot.sealed(110), test_snapshot.sealed(120), test_snapshot.opened(125)], "125:4"
)
TRIMMED = test_snapshot.listing([test_snapshot.sealed(130), test_snapshot.opened(135)], "135:4")


class Held(test_snapshot.FakeAdmin):
    """A partition whose hold was moved for the table at another place."""

    def subscription_properties(self, partition: Partition) -> dict[str, dict[str, str]]:
        found = {TABLE_KEY: "s3://elsewhere/orders", TABLE_ID_KEY: "other", WATERMARK_KEY: "110"}
        return {"pulsar-lake": found}


def clients_of(
    directory: Path, admin: test_snapshot.FakeAdmin, lost: Mapping[str, Any] | None = None
) -> Clients:
    settings = {"storage": {"uri": str(directory)}, "pulsar": dict(lost or {})}
    fake: Any = admin
    return Clients(ReadConfig.load(settings), admin=fake)


def behind(clients: Clients, listed: PartitionLedgers, position: str) -> RowsBehind:
    where = pc.field("__producerName") == "me"
    return read_behind(clients, listed, Position.parse(position), ["__sequenceId"], where)


@pytest.mark.parametrize(
    ("position", "incomplete"),
    [("110:9", True), ("120:-1", True), ("120:9", True), ("125:0", False)],
)
def test_a_ledger_that_was_declared_lost(tmp_path: Path, position: str, incomplete: bool) -> None:
    clients = clients_of(tmp_path, test_snapshot.FakeAdmin(LISTED), {"lost_ledgers": [120]})
    assert behind(clients, LISTED, position).incomplete is incomplete
    with pytest.raises(ConfigurationError, match="declared lost"):
        take_snapshot(clients, test_snapshot.TOPIC)


def record_loss(config: ReadConfig, before: int) -> None:
    """The log says that messages before a ledger were lost, and has forgotten which."""
    test_snapshot.make_table(config, watermark=128)
    numbers = TopicNumbers.data_loss.set(test_snapshot.TOPIC, before)
    numbers |= PartitionNumbers.data_loss.set(test_snapshot.PART, before)
    handle = DeltaTable(f"{config.storage.uri}/public/default/orders")
    handle.create_write_transaction(
        [],
        mode="append",
        schema=handle.schema(),
        commit_properties=CommitProperties(
            app_transactions=[Transaction(*one) for one in numbers.items()]
        ),
    )


@pytest.mark.parametrize(
    ("listed", "position", "incomplete"),
    [
        pytest.param(LISTED, "110:4", False, id="all that follows is listed"),
        pytest.param(TRIMMED, "120:4", False, id="the loss was before"),
        pytest.param(TRIMMED, "119:4", True, id="the loss was behind"),
    ],
)
def test_a_loss_that_the_table_records(
    tmp_path: Path, listed: PartitionLedgers, position: str, incomplete: bool
) -> None:
    config = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    record_loss(config, before=120)
    clients = clients_of(tmp_path, test_snapshot.FakeAdmin(listed))
    assert behind(clients, listed, position).incomplete is incomplete


@pytest.mark.parametrize(("listed", "incomplete"), [(LISTED, False), (TRIMMED, True)])
def test_the_table_of_another_offloader(
    tmp_path: Path, listed: PartitionLedgers, incomplete: bool
) -> None:
    """A job writes with a storage of its own, to a topic that is offloaded elsewhere."""
    held = replace(listed, cursors={"pulsar-lake": Position(120, 0)})
    clients = clients_of(tmp_path, Held(held))
    assert behind(clients, held, "115:4").incomplete is incomplete
    with pytest.raises(ConfigurationError, match="was moved for the table at s3://elsewhere"):
        take_snapshot(clients, test_snapshot.TOPIC)


@pytest.mark.parametrize(("listed", "incomplete"), [(LISTED, False), (TRIMMED, True)])
def test_a_table_of_another_cluster(
    tmp_path: Path, listed: PartitionLedgers, incomplete: bool
) -> None:
    config = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    test_snapshot.make_table(config, watermark=200, created="created-0")
    clients = clients_of(tmp_path, test_snapshot.FakeAdmin(listed))
    assert behind(clients, listed, "115:4").incomplete is incomplete
    with pytest.raises(ConfigurationError, match="another cluster"):
        take_snapshot(clients, test_snapshot.TOPIC)
