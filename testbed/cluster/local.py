"""`LocalCluster`: what the kinds of clusters that a process starts have in common."""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from testbed.cluster.running import Cluster, ports_file
from testbed.process import ClusterError, Process, Server, free_ports, wait_for
from testbed.server import config
from testbed.server.jars import offloader_archives, server_jars


@dataclass(frozen=True)
class Storage:
    """The settings of ZooKeeper and the bookies, for the processes that run them.

    zookeeper, bookies: their settings files.
    setup: arguments of `PulsarClusterMetadataSetup`.
    command: makes a JVM's command line of its main class, arguments and `memory` flags.
    jars, logs: the server's jars, and the folder of logs.
    """

    zookeeper: Path
    bookies: Sequence[Path]
    setup: Sequence[str]
    command: Callable[..., list[str]]
    jars: Path
    logs: Path


class LocalCluster(Cluster, Server):
    """A real Pulsar that this process starts, and that ends with this process.

    `with CompactCluster() as cluster:` or `start()` … `stop()`.

    bookies: how many, at least `ensemble`.
    ensemble, write_quorum, ack_quorum: of every ledger.
    max_entries_per_ledger: when the broker rolls a topic's ledger over.
    directory: working directory, kept after `stop()`. A later cluster of either kind on it finds
        the data again, with the same ports. By default a temporary one that `stop()` removes.
    broker_config, bookie_config: settings that override ours.
    broker_heap: MB.
    log_level: of the servers' logs in `<directory>/logs/`.
    short_lived: the servers stay with Java's quick compiler, which boots cheaper.
    offloaders: the broker has those of Pulsar's own tiered storage. A namespace's policy says which
        it uses (`Admin.set_offload_policy`); none is loaded before.
    """

    _session_ms = config.SHORT_SESSION_MS
    """Of a bookie with ZooKeeper."""

    def __init__(
        self,
        bookies: int = 3,
        *,
        ensemble: int | None = None,
        write_quorum: int = 2,
        ack_quorum: int = 2,
        max_entries_per_ledger: int = 50_000,
        directory: str | Path | None = None,
        broker_config: Mapping[str, object] | None = None,
        bookie_config: Mapping[str, object] | None = None,
        broker_heap: int = 512,
        log_level: str = "INFO",
        short_lived: bool = True,
        offloaders: bool = False,
    ) -> None:
        super().__init__(Path(), ())
        self._count = bookies
        write_quorum = min(write_quorum, bookies)
        self._quorums = (
            min(3, bookies) if ensemble is None else ensemble,
            write_quorum,
            min(ack_quorum, write_quorum),
        )
        self._max_entries = max_entries_per_ledger
        self._given = Path(directory).resolve() if directory is not None else None
        self._broker_config = dict(broker_config or {})
        self._bookie_config = dict(bookie_config or {})
        self._broker_heap = broker_heap
        self._log_level = log_level
        self._short_lived = short_lived
        self._offloaders = offloaders
        self._started = False
        self._all: list[Process] = []

    def start(self) -> None:
        """Boot everything and wait until it is ready. Raises `ClusterError` with a log's tail."""
        if self._started:
            raise ClusterError("this cluster is started already")
        jars = server_jars()
        self.directory = self._given or Path(tempfile.mkdtemp(prefix="pulsar-lake-cluster-"))
        self._started = True
        try:
            known = self._choose_ports()
            storage = self._prepare(jars)
            self._all = [self._broker, *self._prepare_storage(storage, known)]
            self._boot(known)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill every process; remove the working directory if it is a temporary one."""
        if not self._started:
            return
        self._started = False
        for process in self._all:
            process.kill()
        if self._given is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def running(self) -> list[Process]:
        """Return every process that runs now, the broker first."""
        return [process for process in self._all if process.alive]

    # --- the broker ---

    @property
    def broker(self) -> Process:
        return self._broker

    def kill_broker(self) -> None:
        """SIGKILL: open ledgers stay open until the next broker recovers them."""
        self._broker.kill()

    def start_broker(self, timeout: float = 120) -> None:
        """Start the broker on the same ports and wait until it answers."""
        self._broker.spawn()
        self._wait_broker(timeout)

    def restart_broker(self) -> None:
        """In order (SIGTERM), and back on the same ports."""
        self._broker.terminate()
        self.start_broker()

    # --- what a kind of cluster decides ---

    def _prepare_storage(self, storage: Storage, known: bool) -> list[Process]:
        """Return the processes of ZooKeeper and the bookies, without starting them.

        known: the metadata is set up already.
        """
        raise NotImplementedError

    def _start_storage(self, known: bool) -> None:
        """Start ZooKeeper and the bookies. Return when the metadata is set up."""
        raise NotImplementedError

    def _storage(self) -> list[Process]:
        """Return the processes that the broker needs to become ready."""
        raise NotImplementedError

    # --- what a variant of the cluster adds to its settings ---

    def _more_of_setup(self) -> dict[str, str]:
        return {}

    def _more_of_bookie(self, number: int) -> config.Settings:
        return {}

    def _more_of_broker(self) -> config.Settings:
        return {}

    def _more_of_java(self) -> str:
        """JVM flags of bookies and broker."""
        return ""

    def _http(self) -> httpx.Client:
        return httpx.Client(base_url=self.admin_url, timeout=5)

    # --- inside ---

    def _choose_ports(self) -> bool:
        """Choose ports, or take those that the directory's data was written with (then True)."""
        path = ports_file(self.directory)
        known = path.exists()
        ports: list[int] = json.loads(path.read_text()) if known else free_ports(3 + self._count)
        if len(ports) != 3 + self._count:
            raise ClusterError(f"{self.directory} holds a cluster of {len(ports) - 3} bookies")
        self.directory.mkdir(parents=True, exist_ok=True)
        self._ports = ports
        return known

    def _prepare(self, jars: Path) -> Storage:
        """Write all configuration and make the broker's process, without starting it."""
        conf, logs, data = (self.directory / name for name in ("conf", "logs", "data"))
        shutil.rmtree(conf, ignore_errors=True)  # and the temporary files of JVMs killed earlier
        config.write(conf / "log4j2.properties", config.log4j(self._log_level))

        def command(main: str, *arguments: str, memory: str) -> list[str]:
            quick = self._short_lived
            return config.jvm(jars, conf, main, *arguments, memory=memory, short_lived=quick)

        settings = config.zookeeper(data / "zookeeper", self._zookeeper_port)
        zookeeper = config.write(conf / "zookeeper.conf", settings)
        store = f"zk:{self.zookeeper_address}"
        setup = {
            "--cluster": self.name,
            "--metadata-store": store,
            "--configuration-store": store,
            "--web-service-url": f"http://127.0.0.1:{self._web_port}",
            "--broker-service-url": f"pulsar://127.0.0.1:{self._broker_port}",
            "--initial-num-transaction-coordinators": "2",
            **self._more_of_setup(),
        }
        bookies = []
        for number, port in enumerate(self._ports[3:]):
            name = f"bookie-{number}"
            settings = config.bookie(data / name, port, self._zookeeper_port, self._session_ms)
            settings |= self._bookie_config | self._more_of_bookie(number)
            bookies.append(config.write(conf / f"{name}.conf", settings))
        settings = config.broker(
            self._broker_port,
            self._web_port,
            self._zookeeper_port,
            self._quorums,
            self._max_entries,
        )
        if self._offloaders:
            settings |= config.offloaders(offloader_archives(), self.directory)
        settings |= self._more_of_broker() | self._broker_config
        path = config.write(conf / "broker.conf", settings)
        memory = f"-Xms192m -Xmx{self._broker_heap}m -XX:MaxDirectMemorySize=512m"
        main = "org.apache.pulsar.PulsarBrokerStarter"
        memory = f"{memory} {self._more_of_java()}"
        line = command(main, "--broker-conf", str(path), memory=memory)
        self._broker = Process("broker", line, logs / "broker.log", env=config.OFFLOAD_KEYS)
        arguments = [word for pair in setup.items() for word in pair]
        return Storage(zookeeper, bookies, arguments, command, jars, logs)

    def _boot(self, known: bool) -> None:
        self._start_storage(known)
        ports_file(self.directory).write_text(json.dumps(self._ports))
        # The broker needs ledgers only after it has loaded its classes: no need to wait for all.
        self._broker.spawn()
        addresses = {bookie.address for bookie in self.bookies}

        def ready() -> bool:
            """A bookie of an earlier cluster on this directory stays registered for a while."""
            registered = self.available_bookies() >= addresses
            return registered and all(bookie.answers() for bookie in self.bookies)

        everyone = self.running()
        wait_for("the bookies", ready, everyone, 240)
        self._wait_broker(timeout=240)

    def _wait_broker(self, timeout: float) -> None:
        everyone = [*self._storage(), self._broker]
        with self._http() as client:

            def ready() -> bool:
                try:
                    paths = ("/brokers/ready", "/namespaces/public/default")
                    return all(client.get(f"/admin/v2{path}").is_success for path in paths)
                except httpx.TransportError:
                    return False

            wait_for("the broker", ready, everyone, timeout, interval=0.5)
