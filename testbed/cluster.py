"""`Cluster`: one ZooKeeper, some bookies and one broker, each a JVM of its own on loopback."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path

import httpx

from testbed.process import ClusterError, Process, Server, free_ports, wait_for
from testbed.server import config
from testbed.server.jars import offloader_archives, server_jars

__all__ = ["Bookie", "Cluster"]

_START_TLS = bytes.fromhex("0000000b0a06080310091800d20600")
"""A request that every bookie answers, if only with a refusal."""


class Bookie(Process):
    """A bookie. `kill`, `pause` and `resume` as for every process; `start` brings it back."""

    def __init__(self, name: str, command: list[str], log: Path, port: int) -> None:
        super().__init__(name, command, log)
        self.port = port
        self.address = f"127.0.0.1:{port}"
        """Also the bookie's id in ledger metadata."""

    def start(self, timeout: float = 120) -> None:
        """Start it on the same port and data, and wait until it answers."""
        self.spawn()
        wait_for(f"{self.name}'s answer", self._answers, [self], timeout)

    def _answers(self) -> bool:
        """Until it is ready, it accepts connections and closes them."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as peer:
                peer.sendall(_START_TLS)
                return bool(peer.recv(1))
        except OSError:
            return False


class Cluster(Server):
    """A real Pulsar. `with Cluster() as cluster:` or `start()` … `stop()`.

    bookies: how many, at least `ensemble`.
    ensemble, write_quorum, ack_quorum: of every ledger.
    max_entries_per_ledger: when the broker rolls a topic's ledger over.
    directory: working directory, kept after `stop()`, and a later cluster on it finds the data
        again (with the same ports); by default a temporary one that `stop()` removes.
    broker_config, bookie_config: settings that override ours.
    log_level: of the servers' logs in `<directory>/logs/`.
    short_lived: bookies and ZooKeeper stay with Java's quick compiler, which boots cheaper.
    offloaders: the broker has those of Pulsar's own tiered storage. A namespace's policy says which
        it uses (`Admin.set_offload_policy`); none is loaded before.
    """

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
        log_level: str = "INFO",
        short_lived: bool = True,
        offloaders: bool = False,
    ) -> None:
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
        self._log_level = log_level
        self._short_lived = short_lived
        self._offloaders = offloaders
        self._started = False
        self.directory = Path()
        self.bookies: list[Bookie] = []
        self._all: list[Process] = []

    def start(self) -> None:
        """Boot everything and wait until it is ready. Raises `ClusterError` with a log's tail."""
        if self._started:
            raise ClusterError("this cluster is started already")
        jars = server_jars()
        self.directory = self._given or Path(tempfile.mkdtemp(prefix="pulsar-lake-cluster-"))
        self._started = True
        try:
            known = self._ports()
            self._prepare(jars)
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

    # --- addresses ---

    @property
    def service_url(self) -> str:
        """Of the broker's binary protocol, for `pulsar-client`."""
        return f"pulsar://127.0.0.1:{self._broker_port}"

    @property
    def admin_url(self) -> str:
        """Of the broker's REST API."""
        return f"http://127.0.0.1:{self._web_port}"

    @property
    def zookeeper_address(self) -> str:
        return f"127.0.0.1:{self._zookeeper_port}"

    @property
    def name(self) -> str:
        """Pulsar's cluster name."""
        return config.CLUSTER_NAME

    @property
    def offloaders_directory(self) -> Path:
        """Where the broker finds its offloaders: a namespace's policy has to say it again."""
        return self.directory / "offloaders"

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

    # --- the bookies ---

    def available_bookies(self) -> set[str]:
        """Addresses of the bookies that ZooKeeper counts as alive (a killed one for 6 s more)."""
        marker = "/ledgers/available/"
        lines = (line.strip() for line in self._ask_zookeeper("dump").splitlines())
        names = (line.removeprefix(marker) for line in lines if line.startswith(marker))
        return {name for name in names if ":" in name and "/" not in name}

    def wait_bookies(self, timeout: float = 60) -> None:
        """Wait until exactly the bookies that run are registered."""

        def ready() -> bool:
            return self.available_bookies() == {b.address for b in self.bookies if b.alive}

        wait_for("the bookies' registration", ready, timeout=timeout)

    def forget_ledger(self, ledger: int) -> None:
        """Delete BookKeeper's metadata of a ledger, as operators do; its bookies delete the rest
        later, and Pulsar is not told."""
        conf, logs = self.directory / "conf", self.directory / "logs"
        arguments = ["-conf", str(conf / "bookie-0.conf"), "deleteledger", "-l", str(ledger), "-f"]
        main = "org.apache.bookkeeper.bookie.BookieShell"
        jars = server_jars()
        line = config.jvm(jars, conf, main, *arguments, memory="-Xmx128m", short_lived=True)
        shell = Process("shell", line, logs / "shell.log")
        shell.spawn()
        if shell.wait(timeout=120) != 0:
            raise ClusterError(f"ledger {ledger} was not deleted{shell.tail()}")

    def running(self) -> list[Process]:
        """Every process that runs now: broker, bookies, ZooKeeper."""
        return [process for process in self._all if process.alive]

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

    def _ports(self) -> bool:
        """Choose ports, or take those that the directory's data was written with (then True)."""
        path = self.directory / "ports.json"
        known = path.exists()
        ports: list[int] = json.loads(path.read_text()) if known else free_ports(3 + self._count)
        if len(ports) != 3 + self._count:
            raise ClusterError(f"{self.directory} holds a cluster of {len(ports) - 3} bookies")
        self.directory.mkdir(parents=True, exist_ok=True)
        self._zookeeper_port, self._broker_port, self._web_port, *self._bookie_ports = ports
        return known

    def _prepare(self, jars: Path) -> None:
        """Write all configuration and make the processes, without starting one."""
        conf, logs, data = (self.directory / name for name in ("conf", "logs", "data"))
        shutil.rmtree(conf, ignore_errors=True)  # and the temporary files of JVMs killed earlier
        config.write(conf / "log4j2.properties", config.log4j(self._log_level))

        def command(main: str, *arguments: str, memory: str, broker: bool = False) -> list[str]:
            quick = self._short_lived and not broker
            return config.jvm(jars, conf, main, *arguments, memory=memory, short_lived=quick)

        settings = config.zookeeper(data / "zookeeper", self._zookeeper_port)
        path = config.write(conf / "zookeeper.conf", settings)
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._zookeeper = Process(
            "zookeeper", command(main, str(path), memory="-Xmx96m"), logs / "zookeeper.log"
        )
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
        arguments = [word for pair in setup.items() for word in pair]
        main = "org.apache.pulsar.PulsarClusterMetadataSetup"
        self._setup = Process(
            "setup", command(main, *arguments, memory="-Xmx128m"), logs / "setup.log"
        )
        self.bookies = []
        for number, port in enumerate(self._bookie_ports):
            name = f"bookie-{number}"
            settings = config.bookie(data / name, port, self._zookeeper_port)
            settings |= self._bookie_config | self._more_of_bookie(number)
            path = config.write(conf / f"{name}.conf", settings)
            memory = f"-Xms64m -Xmx160m -XX:MaxDirectMemorySize=256m {self._more_of_java()}"
            main = "org.apache.bookkeeper.server.Main"
            line = command(main, "--conf", str(path), memory=memory)
            self.bookies.append(Bookie(name, line, logs / f"{name}.log", port))
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
        memory = f"-Xms192m -Xmx512m -XX:MaxDirectMemorySize=512m {self._more_of_java()}"
        main = "org.apache.pulsar.PulsarBrokerStarter"
        line = command(main, "--broker-conf", str(path), memory=memory, broker=True)
        self._broker = Process("broker", line, logs / "broker.log", env=config.OFFLOAD_KEYS)
        self._all = [self._broker, *self.bookies, self._setup, self._zookeeper]

    def _boot(self, known: bool) -> None:
        zookeeper = self._zookeeper
        zookeeper.spawn()
        wait_for("ZooKeeper", lambda: self._ask_zookeeper("ruok") == "imok", [zookeeper])
        if not known:
            self._setup.spawn()
            if self._setup.wait(timeout=120) != 0:
                raise ClusterError(f"the cluster's metadata was not set up{self._setup.tail()}")
            ports = [self._zookeeper_port, self._broker_port, self._web_port, *self._bookie_ports]
            (self.directory / "ports.json").write_text(json.dumps(ports))
        for bookie in self.bookies:
            bookie.spawn()
        # The broker needs ledgers only after it has loaded its classes: no need to wait here.
        self._broker.spawn()
        addresses = {bookie.address for bookie in self.bookies}
        everyone = [zookeeper, *self.bookies, self._broker]
        wait_for("the bookies", lambda: self.available_bookies() >= addresses, everyone)
        self._wait_broker(timeout=120)

    def _wait_broker(self, timeout: float) -> None:
        everyone = [self._zookeeper, self._broker]
        with self._http() as client:

            def ready() -> bool:
                try:
                    paths = ("/brokers/ready", "/namespaces/public/default")
                    return all(client.get(f"/admin/v2{path}").is_success for path in paths)
                except httpx.TransportError:
                    return False

            wait_for("the broker", ready, everyone, timeout)

    def _ask_zookeeper(self, word: str) -> str:
        """One of ZooKeeper's four-letter words; empty if it does not answer."""
        try:
            with socket.create_connection(("127.0.0.1", self._zookeeper_port), timeout=5) as peer:
                peer.sendall(word.encode())
                return b"".join(iter(lambda: peer.recv(65536), b"")).decode()
        except OSError:
            return ""
