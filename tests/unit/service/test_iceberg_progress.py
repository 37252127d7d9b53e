"""How far Iceberg is behind, by what a process knows: for page, metrics and status."""

from collections.abc import Callable
from pathlib import Path

from offloader.commit.delta_committer import DeltaCommitter
from offloader.model import IcebergLag, IcebergResult
from offloader.service.iceberg_progress import IcebergProgress
from offloader.service.monitor import Monitor
from offloader.service.status import TopicStatus, topic_status
from reader.config import StorageConfig
from reader.errors import UnavailableError
from reader.model import Topic
from reader.storage import open_storage
from tests.support.additions import addition
from tests.unit.offloader.test_status import OnlyStorage

TOPIC = Topic("public", "default", "orders")


def test_it_counts_from_the_first_commit_that_is_not_followed() -> None:
    progress = IcebergProgress()
    assert progress.lag(0.0) is None, "nothing is known"
    progress.committed(4, 100.0)
    progress.committed(5, 200.0)
    assert progress.lag(250.0) == IcebergLag(None, None, 150.0)
    progress.followed(5)
    assert progress.lag(300.0) == IcebergLag(5, 0, 0.0)
    progress.committed(5, 310.0)  # noticed in the log after it was followed
    assert progress.lag(320.0) == IcebergLag(5, 0, 0.0)
    progress.committed(6, 330.0)
    progress.committed(8, 340.0)
    assert progress.lag(350.0) == IcebergLag(5, 3, 20.0)
    progress.followed(6)  # while 7 and 8 were committed
    assert progress.lag(350.0) == IcebergLag(6, 2, 20.0)
    progress.followed(9)
    assert progress.lag(360.0) == IcebergLag(9, 0, 0.0)


def test_a_table_that_was_made_again_is_not_behind_forever() -> None:
    monitor = Monitor(lambda: 1000.0, iceberg=True)
    monitor.committed(TOPIC, 50)
    monitor.followed(TOPIC, IcebergResult(TOPIC, version=50))
    assert monitor.committed(TOPIC, 1), "to be followed at once"
    monitor.followed(TOPIC, IcebergResult(TOPIC, version=1, before=50))
    assert monitor.activity(TOPIC).iceberg == IcebergLag(1, 0, 0.0)
    assert monitor.committed(TOPIC, 2)
    assert monitor.activity(TOPIC).iceberg == IcebergLag(1, 1, 0.0)
    monitor.followed(TOPIC, IcebergResult(TOPIC, version=2, before=1))
    assert monitor.activity(TOPIC).iceberg == IcebergLag(2, 0, 0.0)


def test_what_the_monitor_shows() -> None:
    now = [1000.0]
    monitor = Monitor(lambda: now[0], iceberg=True)
    assert monitor.committed(TOPIC, 1)
    now[0] = 1010.0
    assert monitor.activity(TOPIC).iceberg == IcebergLag(None, None, 10.0)
    monitor.followed(TOPIC, IcebergResult(TOPIC, version=1, added=1))
    assert monitor.activity(TOPIC).iceberg == IcebergLag(1, 0, 0.0)
    assert not monitor.committed(TOPIC, 1), "it is shown already"
    monitor.followed(TOPIC, IcebergResult(TOPIC, version=1, before=1))
    count = monitor.metrics.registry.get_sample_value("pulsar_lake_iceberg_commits_total")
    assert count == 1


def test_without_iceberg_there_is_nothing_to_show() -> None:
    monitor = Monitor(lambda: 1000.0)
    monitor.committed(TOPIC, 1)
    assert monitor.activity(TOPIC).iceberg is None


def test_a_status_says_how_far_it_is_or_what_is_wrong(tmp_path: Path) -> None:
    clients = OnlyStorage(open_storage(StorageConfig(uri=str(tmp_path))))
    DeltaCommitter(clients.storage).commit(None, addition(clients.storage, TOPIC, [3]))
    lag = IcebergLag(1, 2, 7.0)

    def status(iceberg: Callable[[Topic], IcebergLag | None]) -> TopicStatus:
        return topic_status(clients, "pulsar-lake", TOPIC, clock_ms=0, failures={}, iceberg=iceberg)

    found = status(lambda topic: lag)
    assert found.to_json()["iceberg"] == {"version": 1, "versions": 2, "seconds": 7.0}
    assert str(found.iceberg) == "Iceberg shows version 1, 2 behind, for 7 s"

    def away(topic: Topic) -> IcebergLag:
        raise UnavailableError("no catalog")

    found = status(away)
    assert found.iceberg is None
    assert "no catalog" in found.errors
    off = topic_status(clients, "pulsar-lake", TOPIC, clock_ms=0, failures={})
    assert off.to_json()["iceberg"] is None


def test_what_was_done_is_one_line() -> None:
    done = IcebergResult(TOPIC, version=7, before=5, added=3, removed=10, expired=2, cleaned=4)
    assert str(done) == (
        "public/default/orders: Iceberg shows version 7, 3 files added, 10 taken out; "
        "2 snapshots expired, 4 files of metadata deleted"
    )
    assert not done.idle
    assert IcebergResult(TOPIC, version=7, before=7).idle
    assert str(IcebergLag(None, None, 0.0)) == "there is no Iceberg table yet"
    assert str(IcebergLag(7, 0, 0.0)) == "Iceberg shows version 7, the newest"
