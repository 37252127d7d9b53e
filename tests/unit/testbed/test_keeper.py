"""A cluster that several processes share, with a stand-in for the servers."""

import json
import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.cluster import Cluster, ClusterKeeper, LocalCluster, kept_cluster
from testbed.process import ClusterError

PORTS = [2181, 6650, 8080, 3181, 3182]


class _Servers(LocalCluster):
    """Counts its starts and stops; `go_on` lets a start end, which fails if the cluster was
    stopped meanwhile."""

    def __init__(self, directory: Path, fault: str = "") -> None:
        super().__init__(bookies=2)
        self.directory = directory
        self.events: list[str] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self._fault = fault

    def start(self) -> None:
        self.events.append("start")
        self.begun.set()
        assert self.go_on.wait(120)
        if self._fault or "stop" in self.events:
            raise ClusterError(self._fault or "a process is dead")
        (self.directory / "ports.json").write_text(json.dumps(PORTS))

    def stop(self) -> None:
        self.events.append("stop")
        self.go_on.set()


def _prepare(cluster: Cluster) -> None:
    assert isinstance(cluster, _Servers)
    cluster.events.append("prepare")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def _kept(stack: ExitStack, servers: _Servers) -> ClusterKeeper:
    return stack.enter_context(ClusterKeeper(lambda: servers, _prepare))


def _ask(address: str) -> list[str]:
    cluster = kept_cluster(address)
    return [cluster.service_url, cluster.admin_url, *(one.address for one in cluster.bookies)]


def test_it_starts_once_for_all_processes_that_ask(tmp_path: Path, stack: ExitStack) -> None:
    servers = _Servers(tmp_path)
    address = _kept(stack, servers).address
    assert servers.events == []
    expected = [
        "pulsar://127.0.0.1:6650",
        "http://127.0.0.1:8080",
        "127.0.0.1:3181",
        "127.0.0.1:3182",
    ]
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(_ask, address) for _ in range(3)]
        assert servers.begun.wait(120)
        servers.go_on.set()
        assert [one.result(120) for one in asked] == [expected] * 3
    with multiprocessing.get_context("spawn").Pool(1) as other:
        assert other.apply(_ask, [address]) == expected
    assert servers.events == ["start", "prepare"]
    stack.close()
    assert servers.events == ["start", "prepare", "stop"]


def test_a_cluster_that_nobody_asks_for_is_not_started(tmp_path: Path) -> None:
    servers = _Servers(tmp_path)
    with ClusterKeeper(lambda: servers, _prepare):
        pass
    assert servers.events == []


def test_each_process_learns_why_it_was_not_started(tmp_path: Path, stack: ExitStack) -> None:
    servers = _Servers(tmp_path, fault="the bookie died: no space left")
    servers.go_on.set()
    keeper = _kept(stack, servers)
    for _ in range(2):
        with pytest.raises(ClusterError, match=r"was not started: .*no space left"):
            kept_cluster(keeper.address)
    assert servers.events == ["start"]


def test_it_stops_while_it_starts(tmp_path: Path, stack: ExitStack) -> None:
    servers = _Servers(tmp_path)
    keeper = _kept(stack, servers)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(kept_cluster, keeper.address)
        assert servers.begun.wait(120)
        keeper.close()
        with pytest.raises(ClusterError, match="a process is dead"):
            asked.result(120)
    assert servers.events == ["start", "stop"]


def test_a_keeper_that_has_ended_does_not_answer(tmp_path: Path) -> None:
    servers = _Servers(tmp_path)
    with ClusterKeeper(lambda: servers, _prepare) as keeper:
        pass
    with pytest.raises(ClusterError, match="keeper of the shared cluster does not answer"):
        kept_cluster(keeper.address)


def test_logs_can_be_copied_while_it_runs(tmp_path: Path, stack: ExitStack) -> None:
    kept, copy = tmp_path / "servers", tmp_path / "copy"
    (kept / "logs").mkdir(parents=True)
    (kept / "logs/broker.log").write_text("said")
    servers = _Servers(kept)
    servers.go_on.set()
    keeper = _kept(stack, servers)
    copy.mkdir()
    (copy / "older.log").touch()
    keeper.copy_logs(copy)
    assert not copy.exists()
    _ask(keeper.address)
    keeper.copy_logs(copy)
    assert [(one.name, one.read_text()) for one in copy.iterdir()] == [("broker.log", "said")]
