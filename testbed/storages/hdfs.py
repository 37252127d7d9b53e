"""`Hdfs`: a NameNode and a DataNode in one JVM, by Hadoop's own `MiniDFSClusterManager`."""

from importlib.util import find_spec
from pathlib import Path

from hdfs_native import Client

from testbed.process import Process, ProcessServer, free_ports
from testbed.programs import maven_jars

_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
_LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1}: %m%n
"""


class Hdfs(ProcessServer):
    """`with Hdfs() as hdfs:`; everything is gone after."""

    kind = "hdfs"

    def __init__(self, directory: str = "lake") -> None:
        self.directory = directory

    def _prepared(self) -> list[Process]:
        jars = maven_jars("org.apache.hadoop:hadoop-client-minicluster:3.5.0")
        spec = find_spec("pyspark")  # which ships the rest of Hadoop
        assert spec is not None
        assert spec.origin is not None
        pyspark = Path(spec.origin).parent / "jars"
        self.port, page = free_ports(2)
        (self._directory / "log4j2.properties").write_text(_LOGGING)
        self.conf = self._directory / "hdfs-site.xml"
        command = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += [f"-Dlog4j2.configurationFile={self._directory / 'log4j2.properties'}"]
        command += ["-cp", f"{':'.join(map(str, jars))}:{pyspark}/*", _MAIN]
        command += ["-format", "-datanodes", "1", "-nnport", str(self.port)]
        command += ["-httpport", str(page), "-writeConfig", str(self.conf)]
        command += ["-D", f"hdfs.minidfs.basedir={self._directory / 'data'}"]
        command += ["-D", "dfs.permissions.enabled=false"]
        return [Process("hdfs", command, self._directory / "hdfs.log")]

    def _answers(self) -> bool:
        return self.conf.exists()  # written once the DataNode is there

    @property
    def process(self) -> Process:
        """To be paused: there is no HTTP to be put in front of."""
        return self._processes[0]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def uri(self) -> str:
        """A directory as a storage URI."""
        return f"hdfs://{self.address}/{self.directory}"

    @property
    def storage_options(self) -> dict[str, str]:
        """As `[storage.options]` takes them."""
        return {}

    def keys(self, prefix: str = "") -> list[str]:
        """Every file below a prefix of the directory, sorted."""
        root = f"/{self.directory}/"
        try:
            found = list(Client(f"hdfs://{self.address}").list_status(root, True))
        except FileNotFoundError:
            return []
        names = (one.path.removeprefix(root) for one in found if not one.isdir)
        return sorted(name for name in names if name.startswith(prefix))
