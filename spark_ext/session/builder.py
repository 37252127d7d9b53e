"""Spark sessions with Delta, S3A and the catalog ``pulsar`` set up."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reader.errors import ConfigurationError, PulsarLakeError
from reader.storage import open_storage
from spark_ext.session.handoff import (
    SETTINGS_VARIABLE,
    application_settings_file,
    load_settings,
    settings_file,
)
from spark_ext.session.jars import class_path, jars_directory, warehouse
from spark_ext.session.settings import LakeConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "CATALOG",
    "build_session",
    "catalog_settings",
    "require_catalog",
    "running_session",
    "session_conf",
]

CATALOG = "pulsar"
_SHIM = "io.pulsarlake.spark.PulsarCatalog"
_SECRET = re.compile("(?i)secret|password|token|access[.]?key")
"""Names of settings that Spark redacts as well (its default spark.redaction.regex)."""
_LOGGING = Path(__file__).parents[1] / "log4j2.properties"


def session_conf(
    source: LakeConfig | Mapping[str, Any] | str | Path | None,
    *,
    catalog: str = CATALOG,
    quiet: bool = True,
) -> dict[str, str]:
    """Every Spark setting that queries need, ``[spark] conf`` on top.

    With ``quiet``, Spark logs errors only. Fetches the jars on first use.
    """
    config = load_settings(source) if isinstance(source, str) else LakeConfig.load(source)
    jars = jars_directory()
    conf = {
        "spark.driver.extraClassPath": class_path(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        f"spark.sql.catalog.{catalog}": _SHIM,
        # A pinned version stays readable, however long ago it was superseded: vacuum decides.
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": (
            "false"
        ),
        # The log's snapshot in few partitions: 50 tasks for a table of a few files take seconds.
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # "${env:…}" in a query would show the environment, and so a topic that is named so.
        "spark.sql.variable.substitute": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    path = settings_file(source)
    if path is not None:
        conf[f"spark.sql.catalog.{catalog}.config"] = path
    if config.spark.master.startswith("local"):
        conf |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": _half_of_memory(most_gib=4),
            "spark.sql.shuffle.partitions": "16",
        }
    else:
        conf["spark.jars"] = ",".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    if quiet:
        conf["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    return conf | _storage_conf(config) | config.spark.conf


def build_session(
    source: LakeConfig | Mapping[str, Any] | str | Path | None = None,
    *,
    app_name: str = "pulsar-lake",
    quiet: bool = True,
) -> SparkSession:
    """A session with all settings.

    If this process has a session with the catalog already, it is that one, or a new session beside
    it for other settings. Raises ConfigurationError if the running one lacks the catalog: a JVM's
    class path is fixed when it starts.
    """
    config = LakeConfig.load(source)
    running = running_session()
    if running is None:
        return _start(config, app_name, quiet)
    require_catalog(running)
    return running if _settings_of(running) == config else _beside(running, config)


def running_session() -> SparkSession | None:
    """This process's session, from whichever thread; None without one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.Builder().getOrCreate()


def catalog_settings(session: Any, catalog: str) -> LakeConfig:
    """The settings that a catalog of the session reads by, whatever the session says now.

    Raises ConfigurationError for settings that cannot be read, and what Spark raises for a catalog
    that it cannot load.
    """
    spark = session._jsparkSession  # noqa: SLF001 - no other way
    # A catalog is loaded by the settings of the session that is active in the JVM's thread.
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark)
    return load_settings(spark.sessionState().catalogManager().catalog(catalog).config())


def _settings_of(session: SparkSession) -> LakeConfig | None:
    try:
        return catalog_settings(session, CATALOG)
    except ConfigurationError:
        return None  # its file is gone


def _storage_conf(config: LakeConfig) -> dict[str, str]:
    return open_storage(config.storage).spark_conf() if config.storage.uri else {}


def _beside(running: SparkSession, config: LakeConfig) -> SparkSession:
    session = running.newSession()
    path = settings_file(config)
    # This process may choose them; what only runs SQL may not (StartUp.java).
    session._jvm.io.pulsarlake.spark.StartUp.allow([path])  # type: ignore[union-attr]
    session.conf.set(f"spark.sql.catalog.{CATALOG}.config", path or "")
    for key, value in _storage_conf(config).items():
        session.conf.set(key.removeprefix("spark.hadoop."), value)
    return session


def _start(config: LakeConfig, app_name: str, quiet: bool) -> SparkSession:
    from pyspark import SparkConf
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from spark_ext.session.jvm import launch_jvm, safe_path

    if config.spark.master.startswith("local"):
        # Workers unpickle what this interpreter pickled; the JVM reads these two variables.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if quiet:
        # It would print each query error as JSON, although it is raised as well.
        PySparkLogger.getLogger("SQLQueryContextLogger").setLevel("CRITICAL")
    conf = {
        "spark.app.name": app_name,
        "spark.master": config.spark.master,
        # Otherwise Spark would create a folder in the working directory.
        "spark.sql.warehouse.dir": warehouse().as_uri(),
    } | session_conf(config, quiet=quiet)
    settings = SparkConf().setAll(list(conf.items()))
    # Secrets are set once the JVM runs, not on its command line.
    shown = SparkConf().setAll([one for one in conf.items() if not _SECRET.search(one[0])])
    environment = safe_path(sys.path) | {SETTINGS_VARIABLE: application_settings_file(config)}
    try:
        launch_jvm(shown, environment, quiet=quiet)
        return SparkSession.Builder().config(conf=settings).getOrCreate()
    except PulsarLakeError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"Spark could not be started: {_first_line(error)}",
            hint="check Java (17 or newer) and the settings of [spark]",
        ) from error


def require_catalog(session: SparkSession) -> None:
    """Raises ConfigurationError for a session without the catalog."""
    if session.conf.get(f"spark.sql.catalog.{CATALOG}", None) != _SHIM:
        raise ConfigurationError(
            "this Spark session does not have the catalog pulsar, which only a new one can get",
            hint="create it with spark_ext.build_session, or with the settings that "
            "python -m spark_ext.session.conf prints",
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


def _half_of_memory(most_gib: int) -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1024, min(most_gib << 10, (total >> 20) // 2))}m"
