"""A real Pulsar on loopback: ZooKeeper, some bookies and a broker.

    running    `Cluster`: addresses, and what any process may ask of a running one
    local      `LocalCluster`: settings, boot and broker, the same for both kinds
    compact    `CompactCluster`: ZooKeeper and bookies in one JVM; for all that kill no bookie
    processes  `ProcessCluster`: each server a process, to be killed and paused
    keeper     `ClusterKeeper`: one cluster for several processes, started when the first asks

`java/` has the main class of the compact kind, compiled on first use. Imports
`testbed.closing`, `process` and `server`.
"""

from testbed.cluster.compact import CompactCluster
from testbed.cluster.keeper import ClusterKeeper, kept_cluster
from testbed.cluster.local import LocalCluster
from testbed.cluster.processes import BookieProcess, ProcessCluster
from testbed.cluster.running import Bookie, Cluster

__all__ = [
    "Bookie",
    "BookieProcess",
    "Cluster",
    "ClusterKeeper",
    "CompactCluster",
    "LocalCluster",
    "ProcessCluster",
    "kept_cluster",
]
