"""Fixtures that every test may use. The servers start when the first test asks for them."""

import gc
import os
import re
import signal
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test
from xdist.scheduler import LoadFileScheduling

from offloader.config import Config, load_config
from offloader.convert import spark_jobs
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Topic
from reader.pulsar.admin import AdminClient
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster, ClusterKeeper, CompactCluster, LocalCluster, kept_cluster
from testbed.oracle import Oracle
from testbed.programs import ToolMissingError
from testbed.publish import quiet_client
from testbed.s3 import S3
from testbed.storages.kinds import KINDS, storage_server
from testbed.tiered import TieredStorage
from tests.support.examples import register_profiles

# Collection only adds objects. The garbage collector would visit all of them dozens of times.
gc.disable()
register_profiles()

# Spark's Python processes import functions of tests, as they import what users install for them.
_PATHS = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _PATHS))

# What `make test` runs of, but for `long` tests. Of the other folders it runs the journeys.
_FIRST = ("clients", "contract", "maintenance", "simulation", "unit")
# Whole folders that only `make test-nightly` runs.
_NIGHTLY = ("storages",)
# Folders whose tests share a server or topics: a cluster, Spark Connect, the corpus.
_ONE_SERVER = ("contract/corpus", "outages", "security", "spark/connect")
# Tests of `make test` that need the session's Spark or the Java client.
_SHARED_JVMS = frozenset(("lake", "oracle"))
_USING_SHARED_JVMS = (
    "contract/corpus",
    "contract/test_chunks",
    "contract/test_compacted_view",
    "contract/test_encryption",
    "contract/test_transactions",
    "contract/tiered/test_corpus",
    "contract/tiered/test_java",
    "lake",
    "offload/test_hold_safety",
    "scan/test_rows",
    "spark/sink",
    "spark/stream",
    "spark/test_explain",
    "spark/test_lake",
    "spark/test_queries",
)
# Others that start JVMs: daemons with Spark, shells, Spark Connect, Ivy, Hadoop's shell, javac, and
# `java -version`.
_STARTING_JVMS = (
    "clients",
    "iceberg",
    "integration",
    "offload",
    "page",
    "scan",
    "spark",
    "unit/check/test_commands",
    "unit/reader/test_column_names",
    "unit/spark/test_class_archive",
    "unit/spark/test_jars",
    "unit/spark/test_jvm",
    "unit/spark/test_shim",
    "unit/storage/test_storage_identity",
)


# Started in the background by a shell, tests and what they start would ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_in(nodeid: str, places: tuple[str, ...]) -> bool:
    """Whether a test is in one of some folders or files."""
    return nodeid.startswith(tuple(f"tests/{place}{end}" for place in places for end in "/."))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what Hypothesis draws as ``random``, and tests by the target that runs them.

    And give those that use the shared cluster the time that its start may take.
    """
    if is_hypothesis_test(getattr(item, "obj", None)):
        item.add_marker(pytest.mark.random)
    if _is_in(item.nodeid, _NIGHTLY):
        item.add_marker(pytest.mark.nightly)
    if "cluster" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(600))  # the first one waits until all servers run
    chosen = _is_in(item.nodeid, _FIRST) or item.get_closest_marker("journey")
    if item.get_closest_marker("long") or not chosen:
        item.add_marker(pytest.mark.servers)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector run again after the collection, on what the tests create."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that put a proxy in front of a storage that does not speak HTTP."""
    if not hasattr(KINDS[config.getoption("--storage")], "endpoint"):
        for item in items:
            if item.get_closest_marker("proxied"):
                item.add_marker(pytest.mark.skip("no proxy fits in front of this storage"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test that would start a second Spark or Java client with ``--one-spark``."""
    fixtures = _SHARED_JVMS.intersection(getattr(item, "fixturenames", ()))
    if (
        fixtures
        and item.config.getoption("--one-spark")
        and not _is_in(item.nodeid, _USING_SHARED_JVMS)
    ):
        names = ", ".join(sorted(fixtures))
        pytest.fail(f"it uses {names}: add its file to _USING_SHARED_JVMS in tests/conftest.py")


class _FileScheduling(LoadFileScheduling):  # type: ignore[misc]
    """A test file runs in one process, in order; so does a folder with a server of its own.

    With ``--one-spark`` one process runs the tests that use the session's Spark or the Java client,
    and one those that start other JVMs: five at most, with Pulsar's two.
    """

    def _split_scope(self, nodeid: str) -> str:
        if self.config.getoption("--one-spark"):
            if _is_in(nodeid, _USING_SHARED_JVMS):
                return "shared JVMs"
            if _is_in(nodeid, _STARTING_JVMS):
                return "other JVMs"
        folder = next((one for one in _ONE_SERVER if _is_in(nodeid, (one,))), None)
        return folder or str(super()._split_scope(nodeid))


_SHARED = pytest.StashKey[str]()
"""The address of the shared cluster's keeper."""
_KEEPER = pytest.StashKey[ClusterKeeper]()
"""In the process that starts the test processes, or in the only one."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the shared cluster in the process that starts the test processes, or in the only one."""
    given: dict[str, Any] | None = getattr(config, "workerinput", None)
    if given is not None:
        config.stash[_SHARED] = given["shared_cluster"]
        return
    keeper = ClusterKeeper(_shared_cluster, make_first_topic)
    config.add_cleanup(keeper.close)
    config.stash[_KEEPER] = keeper
    config.stash[_SHARED] = keeper.address


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a test process of pytest-xdist where the shared cluster's keeper is."""
    node.workerinput["shared_cluster"] = node.config.stash[_SHARED]


_CRASHED = pytest.StashKey[bool]()
"""Whether a test process of pytest-xdist has crashed."""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Note that a test process crashed. Only the test that it was running fails by itself."""
    if error is not None:
        node.config.stash[_CRASHED] = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if a test process crashed behind its last test, e.g. as it stopped servers.

    Of a run that failed the logs of the shared Pulsar stay, in build/pulsar-logs.
    """
    if session.config.stash.get(_CRASHED, False) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if (keeper := session.config.stash.get(_KEEPER, None)) and session.testsfailed:
        with suppress(OSError):  # a log that is rotated meanwhile hides no failure
            keeper.copy_logs(session.config.rootpath / "build/pulsar-logs")


def _shared_cluster() -> LocalCluster:
    return CompactCluster(
        bookies=3,
        max_entries_per_ledger=5_000,
        offloaders=True,
        broker_heap=768,  # the topics of all test processes
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Not by ``xdist_group``: pytest 9.2 ignores the names that xdist 3.8 gives to its items."""
    return _FileScheduling(config, log)


def make_first_topic(cluster: Cluster) -> None:
    """A new broker needs ten times as long for its first namespace and topic as for others."""
    with Admin(cluster.admin_url) as admin:
        admin.create_namespace("public/first")
        topic = admin.create_topic("public/first/first")
        admin.wait_recovered(topic)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """The Pulsar that all tests of all processes share. No test can stop or kill its servers."""
    return kept_cluster(request.config.stash[_SHARED])


@pytest.fixture(scope="session")
def admin(cluster: Cluster) -> Iterator[Admin]:
    """The shared cluster's REST API."""
    with Admin(cluster.admin_url) as client:
        yield client


@pytest.fixture(scope="session")
def client(cluster: Cluster) -> Iterator[Any]:
    """A `pulsar.Client` of the shared cluster."""
    with quiet_client(cluster.service_url) as opened:
        yield opened


@pytest.fixture(scope="session")
def oracle(cluster: Cluster) -> Iterator[Oracle]:
    """The Java client, on the shared cluster."""
    with Oracle(cluster.service_url, cluster.admin_url) as started:
        yield started


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--storage",
        choices=tuple(KINDS),
        default="moto",
        help="the kind of server behind the fixture s3 (make test-nightly)",
    )
    parser.addoption(
        "--one-spark",
        action="store_true",
        help="run all tests that share a Spark in one process: five JVMs at most (make test)",
    )


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The shared storage server, empty: an `S3`, but with ``--storage`` a server of that kind.

    Tests that run on each kind use of it what `StorageServer` has, and to put a `FaultyStore` in
    front what `HttpStorageServer` has, which HDFS is none of.
    """
    with ExitStack() as stack:
        try:
            server = stack.enter_context(storage_server(request.config.getoption("--storage")))
        except ToolMissingError as error:
            pytest.skip(str(error))
        yield server


def unique_name(request: pytest.FixtureRequest) -> str:
    """Return a name that no other test uses, with the test's or module's own in it."""
    readable = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:60]
    return f"{readable}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """Full name of a topic that does not exist yet."""
    return f"persistent://public/default/{unique_name(request)}"


@pytest.fixture
def namespace(request: pytest.FixtureRequest, admin: Admin) -> str:
    """A new namespace, `public/…`."""
    name = f"public/{unique_name(request)}"
    admin.create_namespace(name)
    return name


@pytest.fixture(scope="session")
def tiered(
    cluster: Cluster, admin: Admin, s3: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TieredStorage]:
    """Pulsar's own tiered storage of the shared cluster: a bucket of S3, wherever the tables are,
    and directories."""
    with ExitStack() as stack:
        bucket = s3 if isinstance(s3, S3) else stack.enter_context(S3())
        yield TieredStorage(cluster, admin, bucket, tmp_path_factory.mktemp("tiered"))


SPARK = {
    "master": "local[2]",
    "delta": True,  # its own scan is what ours is compared with
    # On two cores, for tables of a few files and states of a few keys.
    "conf": {
        "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1",  # a session of minutes
        # The session's JVM is a Connect server as well.
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        # By Spark's defaults Hadoop starts some 25 processes for the checkpoint of a micro-batch on
        # a local disk: for each link that it looks at, and for each file's mode.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    },
}
"""``[spark]`` of the session that tests share."""


@pytest.fixture(scope="session")
def lake_config(
    cluster: Cluster, s3: S3, tiered: TieredStorage, tmp_path_factory: pytest.TempPathFactory
) -> Config:
    """Settings for the shared cluster and bucket; the hold moves right after a commit."""
    return load_config(
        {
            "pulsar": {"service_url": cluster.service_url, "admin_url": cluster.admin_url},
            "storage": {"uri": s3.uri, "options": s3.storage_options},
            "tiered": tiered.places,
            "offload": {"grace": "0s"},
            "query": {"cache_dir": str(tmp_path_factory.mktemp("ranges"))},
            "spark": SPARK,
        }
    )


@pytest.fixture(scope="session")
def lake(lake_config: Config) -> Iterator[PulsarLake]:
    """The one Spark session of the whole run: a JVM has only one."""
    with PulsarLake(lake_config) as opened:
        assert opened.spark  # now: a JVM keeps the jars of whoever starts it
        yield opened


@pytest.fixture(scope="session")
def offload(lake_config: Config, lake: PulsarLake) -> Callable[[str], None]:
    """Offloads every sealed ledger of a topic, in this process."""
    return lambda topic: offload_sealed(lake_config, lake, topic)


def offload_sealed(config: Config, lake: PulsarLake, topic: str) -> None:
    """Offload every sealed ledger of a topic, in this process."""
    with AdminClient(config.pulsar) as client:
        offloader = TopicOffloader(
            Clients(config, admin=client),
            config.offload,
            spark_jobs(lambda: lake.spark.sparkContext),
        )
        while offloader.turn(Topic.parse(topic), now=True).more:
            pass


@pytest.fixture(scope="module")
def lake_namespace(request: pytest.FixtureRequest, admin: Admin) -> str:
    """A namespace of the module's own, `public/…`."""
    name = f"public/{unique_name(request)}"
    admin.create_namespace(name)
    return name
