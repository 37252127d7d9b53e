"""`Cluster`: a running Pulsar on loopback, as any process may use it."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path

from testbed.process import ClusterError, Process
from testbed.server import config
from testbed.server.jars import server_jars

_START_TLS = bytes.fromhex("0000000b0a06080310091800d20600")
"""A request that every bookie answers, if only with a refusal."""


class Bookie:
    """The address of a bookie."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def address(self) -> str:
        """host:port, which is also the bookie's id in ledger metadata."""
        return f"127.0.0.1:{self.port}"

    def answers(self) -> bool:
        """Return whether it is ready. Until then it accepts connections and closes them."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as peer:
                peer.sendall(_START_TLS)
                return bool(peer.recv(1))
        except OSError:
            return False


class Cluster:
    """A running Pulsar. It cannot stop or kill a server, because other processes may use it.

    `ProcessCluster` can.

    directory: the working directory, with settings, logs and data.
    ports: of ZooKeeper, of the broker's binary protocol, of its REST API, and of each bookie.
    """

    def __init__(self, directory: Path, ports: Sequence[int]) -> None:
        self.directory = directory
        self._ports = list(ports)

    @staticmethod
    def at(directory: Path) -> Cluster:
        """Return the cluster that another process runs in this directory."""
        return Cluster(directory, json.loads(ports_file(directory).read_text()))

    @property
    def service_url(self) -> str:
        """The URL of the broker's binary protocol, for `pulsar-client`."""
        return f"pulsar://127.0.0.1:{self._broker_port}"

    @property
    def admin_url(self) -> str:
        """The URL of the broker's REST API."""
        return f"http://127.0.0.1:{self._web_port}"

    @property
    def zookeeper_address(self) -> str:
        """host:port of ZooKeeper."""
        return f"127.0.0.1:{self._zookeeper_port}"

    @property
    def bookies(self) -> Sequence[Bookie]:
        """The bookies, in the order of their numbers."""
        return [Bookie(port) for port in self._ports[3:]]

    @property
    def name(self) -> str:
        """Pulsar's cluster name."""
        return config.CLUSTER_NAME

    @property
    def offloaders_directory(self) -> Path:
        """The folder of the broker's offloaders. A namespace's offload policy has to name it."""
        return self.directory / "offloaders"

    def available_bookies(self) -> set[str]:
        """Return the addresses that ZooKeeper has registered, a killed bookie's for 6 s more."""
        marker = "/ledgers/available/"
        lines = (line.strip() for line in self._ask_zookeeper("dump").splitlines())
        names = (line.removeprefix(marker) for line in lines if line.startswith(marker))
        return {name for name in names if ":" in name and "/" not in name}

    def forget_ledger(self, ledger: int) -> None:
        """Delete BookKeeper's metadata of a ledger, as operators do.

        Its bookies delete the entries later, and Pulsar still lists the ledger.
        """
        conf, logs = self.directory / "conf", self.directory / "logs"
        arguments = ["-conf", str(conf / "bookie-0.conf"), "deleteledger", "-l", str(ledger), "-f"]
        main = "org.apache.bookkeeper.bookie.BookieShell"
        line = config.jvm(
            server_jars(), conf, main, *arguments, memory="-Xmx128m", short_lived=True
        )
        shell = Process("shell", line, logs / "shell.log")
        shell.spawn()
        if shell.wait(timeout=120) != 0:
            raise ClusterError(f"ledger {ledger} was not deleted{shell.tail()}")

    @property
    def _zookeeper_port(self) -> int:
        return self._ports[0]

    @property
    def _broker_port(self) -> int:
        return self._ports[1]

    @property
    def _web_port(self) -> int:
        return self._ports[2]

    def _ask_zookeeper(self, word: str) -> str:
        """Return the answer to one of ZooKeeper's four-letter words; empty without an answer."""
        try:
            with socket.create_connection(("127.0.0.1", self._zookeeper_port), timeout=5) as peer:
                peer.sendall(word.encode())
                return b"".join(iter(lambda: peer.recv(65536), b"")).decode()
        except OSError:
            return ""


def ports_file(directory: Path) -> Path:
    """Return the file that appears once the metadata of a cluster's directory is set up."""
    return directory / "ports.json"
