"""The demo's environment: Pulsar, S3, a topic, the configuration, the command line."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pulsar

from reader.closing import Closing
from testbed.admin import Admin
from testbed.cluster import ProcessCluster
from testbed.publish import Message, publish, quiet_client
from testbed.s3 import S3

_NAMESPACE = "public/default"
_BATCH = 100
_PATIENCE_MILLIS = 30_000


class StageError(RuntimeError):
    """A command of the product failed; one line."""


class Stage(Closing):
    """A running Pulsar and S3 server; a context manager that leaves no process behind.

    name, partitions: of the topic, which is made and whose messages Pulsar keeps for ever.
    split_bytes: how much of a partition goes into one Parquet file.
    cluster: more settings of `Cluster`.
    """

    def __init__(self, name: str, *, partitions: int, split_bytes: str, **cluster: Any) -> None:
        self.topic = f"{_NAMESPACE}/{name}"
        self.table = self.table_of(name)
        self._partitions = partitions
        self._split_bytes = split_bytes
        self._cluster_settings = cluster
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def close(self) -> None:
        """End every process that was started."""
        self._stack.close()

    def _start(self) -> None:
        enter = self._stack.enter_context
        more = self._cluster_settings
        work = Path(enter(tempfile.TemporaryDirectory(prefix="pulsar-lake-demo-")))
        self.cluster = enter(
            ProcessCluster(3, directory=work / "cluster", log_level="WARN", **more)
        )
        self.s3 = enter(S3())
        self.admin = enter(Admin(self.cluster.admin_url))
        self.config = work / "demo.toml"
        self.config.write_text(self._settings(work))
        # BookKeeper keeps all, also what is offloaded: the same rows are read from each tier.
        self.admin.set_retention(_NAMESPACE, -1, -1)
        self.admin.create_topic(self.topic, partitions=self._partitions)
        self._client = enter(quiet_client(self.cluster.service_url))

    def table_of(self, name: str) -> str:
        """A topic of the same namespace, in SQL."""
        return f"pulsar.`{_NAMESPACE}`.{name}"

    def publish(self, messages: Iterable[Message], schema: Any) -> None:
        """Send in order, and wait until all have arrived."""
        publish(self._client, self.topic, messages, schema=schema, batch=_BATCH, compression="LZ4")

    def read(self, name: str) -> list[tuple[str, bytes]]:
        """Key and payload of each message of another topic, as Pulsar's own client reads them."""
        reader = self._client.create_reader(f"{_NAMESPACE}/{name}", pulsar.MessageId.earliest)
        found = []
        try:
            while reader.has_message_available():
                message = reader.read_next(timeout_millis=_PATIENCE_MILLIS)
                found.append((message.partition_key(), message.data()))
        finally:
            reader.close()
        return found

    def seal(self) -> None:
        """Close the open ledger of each partition."""
        self.admin.seal(self.topic)

    def command(self, *words: str) -> list[str]:
        """Run `pulsar-lake` with our configuration; its log lines.

        Raises StageError with its last line if it does not exit with 0.
        """
        program = Path(sys.executable).with_name("pulsar-lake")
        line = [str(program), *words, "--config", str(self.config)]
        # On Ctrl-C the whole process group is interrupted, and run() waits or kills.
        done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(f"$ pulsar-lake {' '.join(words)}\n{done.stderr}", file=sys.stderr, flush=True)
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            raise StageError(f"pulsar-lake {words[0]} exited with {done.returncode}: {last}")
        return done.stderr.splitlines()

    def _settings(self, work: Path) -> str:
        options = "\n".join(f"{k} = {json.dumps(v)}" for k, v in self.s3.storage_options.items())
        return f"""\
[pulsar]
service_url = {json.dumps(self.cluster.service_url)}
admin_url = {json.dumps(self.cluster.admin_url)}

[storage]
uri = {json.dumps(self.s3.uri)}

[storage.options]
{options}

[offload]
topics = [{json.dumps(self.topic)}]
grace = "0s"
split_bytes = {json.dumps(self._split_bytes)}

[query]
# All three tiers take part: by default the bookies are asked for open ledgers, too.
tail_entries = 3000
cache_dir = {json.dumps(str(work / "cache"))}
"""
