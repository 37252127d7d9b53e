"""Pulsar's own tiered storage, beside a cluster that has the offloaders.

    tiered_storage  `TieredStorage`: namespaces that use it, and topics that are moved there

Imports `testbed.admin`, `testbed.cluster` and `testbed.s3`.
"""

from testbed.tiered.tiered_storage import DRIVERS, TieredStorage

__all__ = ["DRIVERS", "TieredStorage"]
