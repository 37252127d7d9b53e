"""Configuration files and JVM flags of ZooKeeper, the bookies and the broker.

Sizes are for one small machine that runs everything; each value that is not about size says
why it is there.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.process import ClusterError

Settings = dict[str, object]

CLUSTER_NAME = "lake"

SHORT_SESSION_MS, LONG_SESSION_MS = 6_000, 120_000
"""Sessions with ZooKeeper: of bookies that are killed, and of bookies that never are."""

OFFLOAD_KEYS = {"ACCESS_KEY_ID": "testing", "ACCESS_KEY_SECRET": "testing"}
"""Where the offloader's driver `S3` looks for keys: those of `testbed.s3`."""

_OPENS = (
    "java.base/java.nio",
    "java.base/java.lang",
    "java.base/java.util",
    "java.base/sun.net",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
    "java.base/jdk.internal.platform",
    "java.base/jdk.internal.misc",
)
_DRIVERS = "org.apache.pulsar.metadata.bookkeeper.PulsarMetadata"


def jvm(
    jars: Path, conf: Path, main: str, *arguments: str, memory: str, short_lived: bool
) -> list[str]:
    """The command line of one server. `memory`: further JVM flags, as one string.

    `conf`: folder with the logging configuration; JVMs put their temporary files there, too,
    because a killed one leaves 12 MB of unpacked native library behind.
    `short_lived`: stay with the quick compiler (C1), which boots cheaper.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise ClusterError("`java` (17 or newer) is not on the PATH and JAVA_HOME is not set")
    flags = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS]
    flags.append("-Dio.netty.tryReflectionSetAccessible=true")
    flags.append("-Dio.netty.leakDetectionLevel=disabled")
    flags += [
        f"-Dbookkeeper.metadata.{side}.drivers={_DRIVERS}{side.title()}Driver"
        for side in ("bookie", "client")
    ]
    flags += [
        f"-Dlog4j2.configurationFile={conf / 'log4j2.properties'}",
        f"-Djava.io.tmpdir={conf}",
    ]
    flags += ["-XX:+UseSerialGC", "-XX:-UsePerfData"]
    if short_lived:
        flags.append("-XX:TieredStopAtLevel=1")
    return [java, *flags, *memory.split(), "-cp", f"{jars}/*", main, *arguments]


def write(path: Path, settings: Mapping[str, object]) -> Path:
    """Write a properties file; booleans in Java's spelling."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f"{key}={str(value).lower() if isinstance(value, bool) else value}\n"
        for key, value in settings.items()
    ]
    path.write_text("".join(lines))
    return path


def log4j(level: str) -> Settings:
    """Plain lines on standard output, which the process's log file catches."""
    return {
        "status": "error",
        "appender.console.type": "Console",
        "appender.console.name": "console",
        "appender.console.layout.type": "PatternLayout",
        "appender.console.layout.pattern": "%d{HH:mm:ss.SSS} [%t] %-5p %c{1} - %m%n",
        "rootLogger.level": level,
        "rootLogger.appenderRef.console.ref": "console",
    }


def zookeeper(data: Path, port: int) -> Settings:
    return {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "tickTime": 1000,  # allows session timeouts from 2 s, see `bookie`
        "maxSessionTimeout": LONG_SESSION_MS,
        "maxClientCnxns": 0,
        "admin.enableServer": False,
        "4lw.commands.whitelist": "ruok,dump",  # `dump` lists who is registered
        "forceSync": "no",
        "preAllocSize": 4096,
    }


def bookie(data: Path, port: int, zookeeper_port: int, session_ms: int) -> Settings:
    """Return a bookie's settings.

    session_ms: how long ZooKeeper counts a killed bookie as available. A bookie that gets no CPU
        for as long ends, too.
    """
    return {
        "bookiePort": port,
        "advertisedAddress": "127.0.0.1",
        "allowLoopback": True,
        "metadataServiceUri": f"metadata-store:zk:127.0.0.1:{zookeeper_port}",
        "zkTimeout": session_ms,
        "journalDirectories": data / "journal",
        "ledgerDirectories": data / "ledgers",
        "indexDirectories": data / "ledgers",
        "nettyMaxFrameSizeBytes": 5253120,  # the broker's 5 MB messages and their headers
        "journalSyncData": False,
        "journalMaxSizeMB": 256,
        "journalPreAllocSizeMB": 4,
        "journalMaxBackups": 0,
        "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
        "dbStorage_writeCacheMaxSizeMb": 48,
        "dbStorage_readAheadCacheMaxSizeMb": 24,
        "dbStorage_rocksDB_blockCacheSize": 8 * 1024 * 1024,
        "dbStorage_rocksDB_writeBufferSizeMB": 8,
        "logSizeLimit": 256 * 1024 * 1024,
        "minUsableSizeForEntryLogCreation": 64 * 1024 * 1024,
        "minUsableSizeForIndexFileCreation": 64 * 1024 * 1024,
        "minUsableSizeForHighPriorityWrites": 64 * 1024 * 1024,
        "diskUsageThreshold": 0.99,
        "gcWaitTime": 2_000,  # tests wait until deleted ledgers are gone for readers, too
        "autoRecoveryDaemonEnabled": False,  # a killed bookie's ledgers stay as they are
        "numAddWorkerThreads": 1,
        "numReadWorkerThreads": 4,
        "numHighPriorityWorkerThreads": 2,
        "serverNumIOThreads": 2,
        "httpServerEnabled": False,
        "enableStatistics": False,
    }


def broker(
    port: int,
    web_port: int,
    zookeeper_port: int,
    quorums: tuple[int, int, int],
    max_entries_per_ledger: int,
) -> Settings:
    """`quorums`: ensemble, write and ack quorum."""
    store = f"zk:127.0.0.1:{zookeeper_port}"
    intercept = "org.apache.pulsar.common.intercept.Append"
    return {
        "clusterName": CLUSTER_NAME,
        "metadataStoreUrl": store,
        "configurationMetadataStoreUrl": store,
        "metadataStoreSessionTimeoutMillis": 20_000,
        "bindAddress": "127.0.0.1",
        "advertisedAddress": "127.0.0.1",
        "brokerServicePort": port,
        "webServicePort": web_port,
        "managedLedgerDefaultEnsembleSize": quorums[0],
        "managedLedgerDefaultWriteQuorum": quorums[1],
        "managedLedgerDefaultAckQuorum": quorums[2],
        # With one bookie of three dead, the two others can still form ledgers.
        "bookkeeper_opportunisticStriping": True,
        "managedLedgerMaxEntriesPerLedger": max_entries_per_ledger,
        "managedLedgerMinLedgerRolloverTimeMinutes": 0,
        "managedLedgerCacheSizeMB": 64,
        "defaultRetentionTimeInMinutes": -1,
        "defaultRetentionSizeInMB": -1,
        "brokerDeleteInactiveTopicsEnabled": False,
        "statsUpdateInitialDelayInSecs": 2,
        "statsUpdateFrequencyInSecs": 2,
        "transactionCoordinatorEnabled": True,
        # In several threads Pulsar 4.2 may forget a topic's aborted transactions (limitations.md).
        "numTransactionReplayThreadPoolSize": 1,
        "systemTopicEnabled": True,
        "topicLevelPoliciesEnabled": True,
        "acknowledgmentAtBatchIndexLevelEnabled": True,
        "brokerEntryMetadataInterceptors": ",".join(
            f"{intercept}{name}MetadataInterceptor" for name in ("Index", "BrokerTimestamp")
        ),
        "nettyMaxFrameSizeBytes": 5253120,
        "exposingBrokerEntryMetadataToClientEnabled": True,
        "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
        "loadBalancerEnabled": False,
        "numIOThreads": 2,
        "numHttpServerThreads": 8,
        "numOrderedExecutorThreads": 4,
        "numCacheExecutorThreadPoolSize": 2,
        "managedLedgerNumSchedulerThreads": 2,
        "maxConcurrentHttpRequests": 256,
        "bookkeeperNumberOfChannelsPerBookie": 2,
        "bookkeeperClientNumWorkerThreads": 2,
        "bookkeeperClientNumIoThreads": 2,
        "webSocketServiceEnabled": False,
    }


def offloaders(archives: Sequence[Path], directory: Path) -> Settings:
    """The broker's: a folder with the offloaders as it wants them named, and one to unpack them."""
    folder = directory / "offloaders"
    folder.mkdir(exist_ok=True)
    for archive in archives:
        link = folder / f"{archive.stem}.nar"
        if not link.exists():
            link.symlink_to(archive)
    return {
        "offloadersDirectory": folder,
        "narExtractionDirectory": directory / "unpacked",
        # Of two, each is busy with its retries while the tests of one process let a store fail.
        "managedLedgerOffloadMaxThreads": 8,
        "managedLedgerOffloadReadThreads": 8,
    }
