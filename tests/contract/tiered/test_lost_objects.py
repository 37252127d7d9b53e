"""Objects that are damaged or gone for good, of ledgers that Pulsar lists: what is left of them.

Nothing is recorded before an operator has declared a ledger lost; then what can be read of it is
rows, each other entry is a rescued row, and queries say so.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from offloader.config import Config
from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import publish
from testbed.tiered import TieredStorage
from tests.contract.against_java import offload_in_thread
from tests.contract.rows import Key, Row, query_rows, rows_of
from tests.contract.tiered.moved import move

_SMALL = 3
_LARGE = 24
_BYTES = 1_000_000


@dataclass(frozen=True)
class Moved:
    """Three ledgers: small, of several blocks, small; each entry one message, which says which."""

    topic: str
    ledgers: list[int]
    config: Config
    tiered: TieredStorage
    driver: str

    def lost(self, *, allow: bool = False) -> Config:
        """The settings of an operator who has declared the second one lost."""
        pulsar = self.config.pulsar.model_copy(update={"lost_ledgers": [self.ledgers[1]]})
        query = self.config.query.model_copy(update={"allow_data_loss": allow})
        return self.config.model_copy(update={"pulsar": pulsar, "query": query})

    def allowing(self) -> Config:
        query = self.config.query.model_copy(update={"allow_data_loss": True})
        return self.config.model_copy(update={"query": query})

    def delete(self) -> None:
        if self.driver != "S3":
            for which in (0, 1):
                self._path(which).unlink()
            return
        for key in self.tiered.objects(self.ledgers[1]):
            self.tiered.s3.client().delete_object(Bucket=self.tiered.bucket, Key=key)

    def _path(self, which: int) -> Path:
        name = ("data", "index")[which]
        (found,) = self.tiered.directory.glob(f"**/{self.ledgers[1]}-*/{name}")
        return found


@pytest.fixture
def make_moved(
    cluster: Cluster, admin: Admin, lake_config: Config, tiered: TieredStorage, namespace: str
) -> Callable[[str], Moved]:
    def make(driver: str) -> Moved:
        tiered.use(namespace, driver)
        topic = f"{namespace}/lost"
        full = f"persistent://{topic}"
        for count, size in ((_SMALL, 10), (_LARGE, _BYTES), (_SMALL, 10)):
            publish(cluster.service_url, full, [b"%03d" % n + bytes(size) for n in range(count)])
            admin.seal(full)
        ledgers = sorted(admin.ledgers(full))[:3]
        move(lake_config, tiered, topic)
        return Moved(topic, ledgers, lake_config, tiered, driver)

    return make


def summary(rows: Mapping[Key, Row]) -> list[tuple[int, int, int | None, str | None]]:
    """(ledger, entry, the message's number, the beginning of the error), in order."""
    found = []
    for row in rows.values():
        value, error = row["value"], row["__error"]
        number = None if value is None else int(value[:3])
        found.append((row["__ledgerId"], row["__entryId"], number, error and error[:13]))
    return sorted(found, key=lambda one: one[:2])


def expected(moved: Moved, lost: range) -> list[tuple[int, int, int | None, str | None]]:
    found: list[tuple[int, int, int | None, str | None]] = []
    for ledger, count in zip(moved.ledgers, (_SMALL, _LARGE, _SMALL), strict=True):
        for n in range(count):
            gone = ledger == moved.ledgers[1] and n in lost
            found.append((ledger, n, None, "damaged entry") if gone else (ledger, n, n, None))
    return found


def check(moved: Moved, lost: range) -> None:
    """From the objects, and from the table; before the operator's word nothing is recorded."""
    ledger = moved.ledgers[1]
    for _ in range(2):
        with pytest.raises(PulsarLakeError, match=f"ledger {ledger} of .*tiered storage") as raised:
            offload_in_thread(moved.config, moved.topic)
        assert f"pulsar.lost_ledgers = [{ledger}]" in str(raised.value.hint)
        with pytest.raises(NotFoundError):
            rows_of(moved.config, moved.topic, "parquet")
    said = rf"ledger {ledger} was declared lost \(pulsar.lost_ledgers\)"
    with pytest.raises(ConfigurationError, match=said):
        query_rows(moved.lost(), moved.topic)
    rows = query_rows(moved.lost(allow=True), moved.topic)
    assert summary(rows) == expected(moved, lost)
    offload_in_thread(moved.lost(), moved.topic)
    assert rows_of(moved.allowing(), moved.topic, "parquet") == rows
    # A fact of the table from now on.
    with pytest.raises(ConfigurationError, match=said):
        query_rows(moved.config, moved.topic)
    assert query_rows(moved.allowing(), moved.topic) == rows


@pytest.mark.parametrize("driver", ["S3", pytest.param("BLOCK", marks=pytest.mark.long)])
def test_an_object_that_was_deleted(driver: str, make_moved: Callable[[str], Moved]) -> None:
    """Also what a query says before, without a table: one line, once the broker was asked."""
    moved = make_moved(driver)
    moved.delete()
    impatient = moved.config.pulsar.model_copy(update={"timeout": timedelta(seconds=2)})
    ledger = moved.ledgers[1]
    missing = f"asked because of: ledger {ledger} of .* is not there"
    with pytest.raises(UnavailableError, match=f"^the broker .* is silent .*{missing}") as raised:
        query_rows(moved.config.model_copy(update={"pulsar": impatient}), moved.topic)
    assert f"pulsar.lost_ledgers = [{ledger}]" in str(raised.value)
    assert "\n" not in str(raised.value)
    check(moved, range(_LARGE))


@pytest.mark.long
def test_a_ledger_that_bookkeeper_does_not_know(
    cluster: Cluster, admin: Admin, lake_config: Config, tiered: TieredStorage, namespace: str
) -> None:
    """Pulsar lists it all the same. As `bookkeeper shell deleteledger` leaves it."""
    full = f"persistent://{namespace}/unknown"
    for count in (_SMALL, _LARGE, _SMALL):
        publish(cluster.service_url, full, [b"%03d" % n for n in range(count)])
        admin.seal(full)
    ledgers = sorted(admin.ledgers(full))[:3]
    moved = Moved(f"{namespace}/unknown", ledgers, lake_config, tiered, "")
    assert summary(query_rows(lake_config, moved.topic)) == expected(moved, range(0))
    cluster.forget_ledger(ledgers[1])
    admin.seal(full)  # the broker, too, has to load it anew
    with pytest.raises(PulsarLakeError, match=f"ledger {ledgers[1]}"):
        offload_in_thread(moved.config, moved.topic)
    assert summary(query_rows(moved.lost(allow=True), moved.topic)) == expected(
        moved, range(_LARGE)
    )
    offload_in_thread(moved.lost(), moved.topic)
    rows = rows_of(moved.allowing(), moved.topic, "parquet")
    assert summary(rows) == expected(moved, range(_LARGE))
    with pytest.raises(ConfigurationError, match=f"ledger {ledgers[1]} was declared lost"):
        query_rows(moved.config, moved.topic)
