"""Pulsar's own tiered storage: namespaces that use it, and topics that are moved there."""

import time
from pathlib import Path
from typing import Any

from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.s3 import S3

DRIVERS = ("S3", "NONE", "RECORD", "BLOCK")
"""Of a bucket; of a directory, by what of its files is compressed."""

_BUCKET = "tiered"
_LEAST_BLOCK = 5 << 20
_PATIENCE, _PAUSE = 60, 0.2
"""Seconds for which a failed offload is retried, and between two attempts."""
_ENDLESS = 10 * 365 * 24 * 3_600_000


class TieredStorage:
    """The tiered storage of one cluster with `offloaders`.

    `directory`: for the filesystem driver.
    """

    def __init__(self, cluster: Cluster, admin: Admin, s3: S3, directory: Path) -> None:
        self._cluster = cluster
        self._admin = admin
        self.s3 = s3
        self.bucket = _BUCKET
        self.directory = directory
        s3.client().create_bucket(Bucket=_BUCKET)
        # An empty directory may be one that is not mounted.
        (directory / "README").touch()

    @property
    def places(self) -> list[dict[str, Any]]:
        """Return the places as `[[tiered]]` lists them."""
        options = self.s3.storage_options
        return [
            {"uri": f"s3://{_BUCKET}", "options": options},
            {"uri": str(self.directory), "namespaces": ["public/*"]},
        ]

    def use(
        self,
        namespace: str,
        driver: str = "S3",
        *,
        endpoint: str = "",
        keep: bool = False,
        block_bytes: int = _LEAST_BLOCK,
    ) -> None:
        """Let a namespace's ledgers be offloaded, when somebody asks for that.

        `endpoint`: of the S3 server, if it is not reached directly; `keep`: BookKeeper's copies
        stay; else they go with the next `trim`. `block_bytes`: of an object of S3's; no entry may
        be larger (Pulsar would lose it), and Pulsar allows no less than 5 MiB.
        """
        policy: dict[str, Any] = {
            "offloadersDirectory": str(self._cluster.offloaders_directory),
            "managedLedgerOffloadThresholdInBytes": -1,
            "managedLedgerOffloadDeletionLagInMillis": _ENDLESS if keep else 0,
        }
        if driver == "S3":
            policy |= {
                "managedLedgerOffloadDriver": "S3",
                "managedLedgerOffloadBucket": _BUCKET,
                "managedLedgerOffloadRegion": "us-east-1",
                "managedLedgerOffloadServiceEndpoint": endpoint or self.s3.endpoint,
                "managedLedgerOffloadMaxBlockSizeInBytes": block_bytes,
            }
        else:
            policy |= {
                "managedLedgerOffloadDriver": "filesystem",
                "fileSystemURI": f"file://{self.directory}",
                "fileSystemProfilePath": str(self._profile(driver)),
            }
        self._admin.set_offload_policy(namespace, **policy)

    def offload(self, topic: str) -> None:
        """Let Pulsar offload all closed ledgers of a topic, and delete BookKeeper's copies."""
        partitions = self._admin.partitions(topic)
        for partition in partitions:
            self._offload(partition)
        for partition in partitions:
            self._admin.trim(partition)

    def _offload(self, partition: str) -> None:
        """Offload one partition, and retry for `_PATIENCE` seconds.

        A loaded topic learns a new policy of its namespace with a delay, and a busy machine runs
        into timeouts. Raises RuntimeError with the last failure.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._admin.offload(partition)
                return
            except RuntimeError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_PAUSE)

    def objects(self, ledger: int) -> list[str]:
        """Return the keys of a ledger's objects in the bucket: its data, its index."""
        pages = self.s3.client().get_paginator("list_objects_v2").paginate(Bucket=_BUCKET)
        keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
        ends = f"-ledger-{ledger}", f"-ledger-{ledger}-index"
        return sorted(key for key in keys if key.endswith(ends))

    def _profile(self, compression: str) -> Path:
        """Hadoop's settings, as the filesystem driver reads them."""
        path = self.directory.parent / f"{self.directory.name}-{compression}.xml"
        name, value = "io.seqfile.compression.type", compression
        path.write_text(
            '<?xml version="1.0"?><configuration><property>'
            f"<name>{name}</name><value>{value}</value></property></configuration>"
        )
        return path
