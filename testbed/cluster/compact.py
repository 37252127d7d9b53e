"""`CompactCluster`: ZooKeeper and all bookies in one JVM, the broker in another."""

import os
from pathlib import Path

from testbed.cluster.local import LocalCluster, Storage
from testbed.process import Process, wait_for
from testbed.server import config
from testbed.server.classes import compiled

_SOURCES = Path(__file__).with_name("java")


class CompactCluster(LocalCluster):
    """A real Pulsar in two JVMs. The broker can be killed and restarted, a bookie cannot.

    The metadata is set up in the JVM of ZooKeeper and the bookies, too. That JVM ends when one of
    them ends.
    """

    # No bookie is killed alone, and none may end because its machine is busy for some seconds.
    _session_ms = config.LONG_SESSION_MS

    def _prepare_storage(self, storage: Storage, known: bool) -> list[Process]:
        arguments = [str(path) for path in (storage.zookeeper, *storage.bookies)]
        if not known:
            arguments += ["--", *storage.setup]
        heap, direct = 128 + 96 * self._count, 256 * self._count
        memory = f"-Xms64m -Xmx{heap}m -XX:MaxDirectMemorySize={direct}m {self._more_of_java()}"
        line = storage.command("CompactStorage", *arguments, memory=memory)
        classes = compiled("cluster", _SOURCES, storage.jars)
        line[line.index("-cp") + 1] += f"{os.pathsep}{classes}"
        self._jvm = Process("storage", line, storage.logs / "storage.log")
        return [self._jvm]

    def _start_storage(self, known: bool) -> None:
        self._jvm.spawn()
        # Bookies start, and register, after the metadata is set up.
        wait_for("the first bookie", lambda: bool(self.available_bookies()), [self._jvm], 240)

    def _storage(self) -> list[Process]:
        return [self._jvm]
