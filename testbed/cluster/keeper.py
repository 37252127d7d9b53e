"""`ClusterKeeper`: one cluster that several processes use."""

import contextlib
import json
import os
import shutil
import socket
import socketserver
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from testbed.closing import Closing
from testbed.cluster.local import LocalCluster
from testbed.cluster.running import Cluster
from testbed.process import ClusterError

_POLL_SECONDS = 0.05
"""The longest time until the socket is closed at the end."""


class ClusterKeeper(Closing):
    """A cluster that starts when a process asks for it first, and ends with its keeper.

    It belongs into the process that starts all others, e.g. the controller of pytest-xdist. That
    process lives longer than the others, so no users have to be counted. The servers die with it
    when it is killed, and a test process that crashes takes no server away from the others.

    make: returns the cluster, not started.
    prepare: called with the started cluster, before any process gets it.
    address: what `kept_cluster` needs, a text.
    """

    def __init__(
        self, make: Callable[[], LocalCluster], prepare: Callable[[Cluster], None]
    ) -> None:
        self._make = make
        self._prepare = prepare
        self._lock = threading.Lock()
        self._cluster: LocalCluster | None = None
        self._answer: dict[str, str] = {}
        # A name, not a file: it ends with this process.
        self.address = f"pulsar-lake cluster {os.getpid()} {uuid.uuid4().hex[:8]}"
        self._server = _Server(self.address, self._answer_once)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=[_POLL_SECONDS], daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop the cluster, also one that is about to start."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._cluster is not None:
            self._cluster.stop()  # a start that goes on fails then, because its processes are dead

    def copy_logs(self, folder: Path) -> None:
        """Copy the servers' logs into ``folder``, which is made anew; none if none were started."""
        shutil.rmtree(folder, ignore_errors=True)
        if "directory" in self._answer:
            shutil.copytree(Path(self._answer["directory"]) / "logs", folder)

    def _answer_once(self) -> dict[str, str]:
        """Start the cluster at the first call. Later calls return the same answer, or error."""
        with self._lock:
            if not self._answer:
                try:
                    self._cluster = self._make()
                    self._cluster.start()
                    self._prepare(self._cluster)
                except Exception as error:  # noqa: BLE001 - whoever asked raises it
                    self._answer = {"error": f"{type(error).__name__}: {error}"}
                else:
                    self._answer = {"directory": str(self._cluster.directory)}
            return self._answer


def kept_cluster(address: str) -> Cluster:
    """Return the cluster of a `ClusterKeeper`, once it is ready.

    Raises ClusterError if it could not be started, with the reason, or if the keeper has ended.
    """
    with socket.socket(socket.AF_UNIX) as peer:
        try:
            peer.connect(f"\0{address}")
            text = peer.makefile().readline()
        except OSError as error:
            raise ClusterError(
                f"the keeper of the shared cluster does not answer: {error}"
            ) from error
    if not text:
        raise ClusterError("the keeper of the shared cluster ended before the cluster was ready")
    answer = json.loads(text)
    if "error" in answer:
        raise ClusterError(f"the shared cluster was not started: {answer['error']}")
    return Cluster.at(Path(answer["directory"]))


class _Server(socketserver.ThreadingUnixStreamServer):
    """Sends each caller one line of JSON. Callers wait in threads of their own."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: str, answer: Callable[[], dict[str, str]]) -> None:
        self.answer = answer
        super().__init__(f"\0{address}", _Handler)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        line = json.dumps(self.server.answer()).encode() + b"\n"
        with contextlib.suppress(OSError):  # the caller has ended meanwhile
            self.wfile.write(line)
