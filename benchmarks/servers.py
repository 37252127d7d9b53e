"""One cluster and those who talk to it, each started when first asked for."""

import shutil
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.contenders.peers import JavaReader
from benchmarks.data.layouts import Layout
from reader.closing import Closing
from testbed.admin import Admin
from testbed.cluster import ProcessCluster
from testbed.publish import quiet_client
from testbed.usage import cpu_seconds, process_seconds

NAMESPACE = "public/default"
_ENDLESS = 10_000_000  # entries of a ledger


class Servers(Closing):
    """A cluster of one layout, its data in `directory`."""

    def __init__(self, layout: Layout, directory: Path) -> None:
        self.layout = layout
        self._directory = directory
        self._stack = ExitStack()
        self._java: JavaReader | None = None

    def close(self) -> None:
        """End every process that was started, and remove the data; a second time does nothing."""
        self._stack.close()

    @cached_property
    def cluster(self) -> ProcessCluster:
        buffer = self.layout.read_buffer
        cluster = ProcessCluster(
            self.layout.ensemble,
            ensemble=self.layout.ensemble,
            directory=self._directory,
            log_level="WARN",
            short_lived=False,  # as bookies run in production
            max_entries_per_ledger=_ENDLESS,
            broker_config={"managedLedgerMaxSizePerLedgerMbytes": 16_384},
            bookie_config={"readBufferSizeBytes": buffer} if buffer else {},
        )
        self._stack.callback(shutil.rmtree, self._directory, ignore_errors=True)
        return self._stack.enter_context(cluster)

    @cached_property
    def admin(self) -> Admin:
        admin = self._stack.enter_context(Admin(self.cluster.admin_url))
        # BookKeeper keeps all, also what is offloaded: the same rows are read from each tier.
        admin.set_retention(NAMESPACE, -1, -1)
        # The Java client names its own class's schema when it reads.
        admin.set_schema_compatibility(NAMESPACE, "ALWAYS_COMPATIBLE")
        return admin

    @cached_property
    def client(self) -> Any:
        """A `pulsar.Client`, in this process."""
        return self._stack.enter_context(quiet_client(self.cluster.service_url))

    @property
    def java(self) -> JavaReader:
        if self._java is None:
            self._java = self._stack.enter_context(JavaReader(self.cluster.service_url))
        return self._java

    def servers_cpu(self) -> float:
        """CPU seconds so far of bookies, broker and ZooKeeper."""
        return process_seconds(*(one.pid for one in self.cluster.running()))

    def cpu(self) -> float:
        """CPU seconds so far of all that takes part in reading.

        This process (`pulsar-client` runs in it), the servers, the Java client where there is one.
        """
        java = process_seconds(self._java.pid) if self._java else 0.0
        return cpu_seconds() + self.servers_cpu() + java
