"""The peers: what one would use without the product."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulsar
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data.topics import Published
from benchmarks.measure import BrokenCaseError
from testbed.process import Server
from testbed.server import config
from testbed.server.jars import server_jars

_QUEUE = 10_000  # ten times the clients' default, which is faster
_JAVA = Path(__file__).with_name("java")


def python_reader(client: Any, topic: Published) -> tuple[int, int]:
    """A plain `pulsar-client` loop that decodes no value: (messages, bytes of payload).

    It knows how many there are, so it does not have to ask before each.
    """
    size = 0
    with _reader(client, topic) as reader:
        for _ in range(topic.rows):
            size += len(reader.read_next().data())
    return topic.rows, size


def python_rows(client: Any, topic: Published) -> tuple[int, int]:
    """The same with each value as a dict: (messages, sum of ids)."""
    ids = 0
    with _reader(client, topic) as reader:
        for _ in range(topic.rows):
            ids += json.loads(reader.read_next().data())["id"]
    return topic.rows, ids


@contextmanager
def _reader(client: Any, topic: Published) -> Iterator[Any]:
    reader = client.create_reader(topic.name, pulsar.MessageId.earliest, receiver_queue_size=_QUEUE)
    try:
        yield reader
    finally:
        reader.close()


class JavaClient(Server):
    """Pulsar's Java client in one JVM with its usual compilers; ``source``: what it runs."""

    def __init__(
        self, service_url: str, source: str, memory: str = "-Xmx1g -XX:MaxDirectMemorySize=512m"
    ) -> None:
        self._service_url = service_url
        self._source = _JAVA / source
        self._memory = memory

    def start(self) -> None:
        jars = server_jars()
        self._directory = tempfile.TemporaryDirectory(prefix="pulsar-lake-bench-java-")
        folder = Path(self._directory.name)
        logging = {**config.log4j("WARN"), "appender.console.target": "SYSTEM_ERR"}
        config.write(folder / "log4j2.properties", logging)
        command = config.jvm(
            jars,
            folder,
            str(self._source),
            self._service_url,
            memory=self._memory,
            short_lived=False,
        )
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )

    def stop(self) -> None:
        """It ends with its input."""
        try:
            self._child.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.communicate()
        self._directory.cleanup()

    @property
    def pid(self) -> int:
        return self._child.pid

    def ask(self, line: str, words: int = 1) -> list[str]:
        """Its answer to a request, of so many words."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline().split()
        if len(answer) != words:
            raise BrokenCaseError("the Java client failed; its reason is in the log")
        return answer


class JavaReader(JavaClient):
    """Reads one topic a request."""

    def __init__(self, service_url: str) -> None:
        super().__init__(service_url, "TimedReader.java")

    def read(self, topic: Published) -> tuple[int, int, int]:
        """Read and decode everything: (messages, sum of ids, sum of cents)."""
        answer = self.ask(f"{topic.name} {topic.spec.encoding} {topic.rows}", words=4)
        count, ids, cents, _ = map(int, answer)
        return count, ids, cents


def write_parquet(table: pa.Table, path: Path) -> int:
    """pyarrow alone, zstd, everything else as it comes; the file's number of rows."""
    pq.write_table(table, path, compression="zstd")
    return int(pq.read_metadata(path).num_rows)
