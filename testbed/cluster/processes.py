"""`ProcessCluster`: ZooKeeper, each bookie and the broker as a JVM of its own."""

from collections.abc import Sequence
from pathlib import Path

from testbed.cluster.local import LocalCluster, Storage
from testbed.cluster.running import Bookie
from testbed.process import ClusterError, Process, wait_for


class BookieProcess(Bookie, Process):
    """A bookie. `kill`, `pause` and `resume` as for every process; `start` brings it back."""

    def __init__(self, name: str, command: list[str], log: Path, port: int) -> None:
        Bookie.__init__(self, port)
        Process.__init__(self, name, command, log)

    def start(self, timeout: float = 120) -> None:
        """Start it on the same port and data, and wait until it answers."""
        self.spawn()
        wait_for(f"{self.name}'s answer", self.answers, [self], timeout)


class ProcessCluster(LocalCluster):
    """A real Pulsar whose bookies can be killed and paused, one by one.

    It has two JVMs more than bookies. `CompactCluster` has two, boots faster and needs less memory.
    """

    _bookies: Sequence[BookieProcess] = ()

    @property
    def bookies(self) -> Sequence[BookieProcess]:
        """The bookies, in the order of their numbers."""
        return self._bookies

    def wait_bookies(self, timeout: float = 60) -> None:
        """Wait until exactly the bookies that run are registered."""

        def ready() -> bool:
            return self.available_bookies() == {b.address for b in self.bookies if b.alive}

        wait_for("the bookies' registration", ready, timeout=timeout)

    def _prepare_storage(self, storage: Storage, known: bool) -> list[Process]:
        command, logs = storage.command, storage.logs
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        line = command(main, str(storage.zookeeper), memory="-Xmx96m")
        self._zookeeper = Process("zookeeper", line, logs / "zookeeper.log")
        main = "org.apache.pulsar.PulsarClusterMetadataSetup"
        line = command(main, *storage.setup, memory="-Xmx128m")
        self._setup = Process("setup", line, logs / "setup.log")
        memory = f"-Xms64m -Xmx160m -XX:MaxDirectMemorySize=256m {self._more_of_java()}"
        main = "org.apache.bookkeeper.server.Main"
        bookies = []
        for path, port in zip(storage.bookies, self._ports[3:], strict=True):
            line = command(main, "--conf", str(path), memory=memory)
            bookies.append(BookieProcess(path.stem, line, logs / f"{path.stem}.log", port))
        self._bookies = bookies
        return [*bookies, self._setup, self._zookeeper]

    def _start_storage(self, known: bool) -> None:
        self._zookeeper.spawn()
        wait_for("ZooKeeper", lambda: self._ask_zookeeper("ruok") == "imok", [self._zookeeper])
        if not known:
            self._setup.spawn()
            if self._setup.wait(timeout=120) != 0:
                raise ClusterError(f"the cluster's metadata was not set up{self._setup.tail()}")
        for bookie in self.bookies:
            bookie.spawn()

    def _storage(self) -> list[Process]:
        return [self._zookeeper]
