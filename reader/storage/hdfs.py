"""HDFS: ``hdfs://namenode:8020/prefix``, or ``hdfs://nameservice/prefix``.

Commits are renames that do not overwrite. Hadoop's configuration is that of ``conf_dir``, else of
``HADOOP_CONF_DIR``: all clients get the same properties. Kerberos is theirs: a ticket cache, by
``kinit``.
"""

import os
import re
from urllib.parse import urlsplit

from reader.errors import ConfigurationError, UnavailableError, plain_text
from reader.storage.base import ClientStorage
from reader.storage.hadoop_conf import hadoop_properties
from reader.storage.stores import StorageClient

# Of others, delta-rs reads some by another name than it has written them, and says that there is no
# table; HDFS has no colon.
_NAMEABLE = re.compile(r"[A-Za-z0-9/._~!$&'()*+,;=@-]*")
_USER = "HADOOP_USER_NAME"
# hdfs-native tries a NameNode for three minutes by default; a user wants to be told. This is a
# quarter of one.
_PATIENCE = {
    "dfs.client.failover.max.attempts": "6",
    "dfs.client.failover.sleep.max.millis": "3000",
}


class HdfsStorage(ClientStorage):
    """Options reach delta-rs, hdfs-native and Spark alike.

    ``user_name``: who we are where the cluster asks for no proof. All three clients take it from
    the environment of the process alone, so a process has one.
    """

    OPTIONS = ("user_name", "conf_dir")

    def _root(self, uri: str) -> str:
        parsed = urlsplit(uri)
        if not parsed.netloc:
            raise ConfigurationError(
                "storage.uri names no NameNode",
                hint="write hdfs://namenode:8020/prefix, or hdfs://nameservice/prefix",
            )
        if "@" in parsed.netloc:
            raise ConfigurationError(
                "storage.uri has a user", hint="name it in storage.options.user_name"
            )
        if not _NAMEABLE.fullmatch(parsed.path):
            raise ConfigurationError(
                "storage.uri has a character that delta-rs cannot name on HDFS",
                hint="use a directory of ASCII letters, digits and ._-",
            )
        options = self.config.options
        self._conf = hadoop_properties(options.get("conf_dir", "")) or hadoop_properties(
            os.environ.get("HADOOP_CONF_DIR", ""), optional=True
        )
        self._set_user()
        return f"hdfs://{parsed.netloc}{parsed.path}".rstrip("/")

    def _set_user(self) -> None:
        user = self.config.options.get("user_name", "")
        if not user or os.environ.setdefault(_USER, user) == user:
            return
        raise ConfigurationError(
            f"storage.options.user_name is {user!r}, but {_USER} is {os.environ[_USER]!r} here",
            hint="a process has one user on HDFS: drop one of the two",
        )

    def _path(self) -> str:
        return urlsplit(self.root).path

    def _open_client(self) -> StorageClient:
        try:
            from reader.storage.stores.hdfs_client import HdfsClient
        except ImportError as error:
            raise ConfigurationError(
                "hdfs:// needs the package hdfs-native", hint="pip install 'pulsar-lake[hdfs]'"
            ) from error
        place = f"hdfs://{urlsplit(self.root).netloc}"
        try:
            return HdfsClient(place, self._path(), self.delta_options())
        except OSError as error:
            raise ConfigurationError(
                f"cannot use the storage at {place}: {plain_text(error)}",
                hint="check storage.uri and storage.options.conf_dir",
            ) from error

    def require_answer(self) -> None:
        """delta-rs would wait for ever for a NameNode that is stopped, or behind a firewall."""
        try:
            self._client().info("")
        except OSError as error:
            raise UnavailableError(
                f"cannot use the storage at {self.root}: {plain_text(error)}",
                hint="is the NameNode there, and its port open from here?",
            ) from error

    def delta_options(self) -> dict[str, str]:
        return _PATIENCE | self._conf

    def spark_conf(self) -> dict[str, str]:
        return {f"spark.hadoop.{name}": value for name, value in self._conf.items()}
