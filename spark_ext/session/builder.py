"""Spark sessions with the catalog ``pulsar`` and the storage set up, and with Delta if wanted."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reader.errors import ConfigurationError, PulsarLakeError
from reader.storage import open_storage
from spark_ext.session.handoff import load_settings, settings_file
from spark_ext.session.jars import CONNECTORS, class_path, groups_for, session_jars, warehouse
from spark_ext.session.settings import LakeConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "pulsar"
_SHIM = "io.pulsarlake.spark.catalog.PulsarCatalog"
_EXTENSIONS = "io.pulsarlake.spark.rules.PulsarLakeExtensions"
_DELTA = {
    "spark.sql.extensions": f"{_EXTENSIONS},io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # The log's snapshot in few partitions: 50 tasks for a table of a few files take seconds.
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""What Delta's own tables need beside topics."""
REDACTED = "(?i)secret|password|token|access[.]?key|account[.]key|private[.]key"
"""Names of settings that nobody is shown: Spark's own expression, and keys of Azure and of GCS."""
_SECRET = re.compile(REDACTED)
_REDACTION = "spark.redaction.regex"
_OPTIONS = "spark.driver.defaultJavaOptions"
_COMPILER = " ".join(
    f"-XX:Tier4{name}={value}"
    for name, value in (
        ("InvocationThreshold", 50_000),
        ("MinInvocationThreshold", 6_000),
        ("CompileThreshold", 150_000),
        ("BackEdgeThreshold", 400_000),
    )
)
"""Java's second compiler takes what has run ten times as often as by default: a first query is
planned by code that hardly runs again, and the loop over rows is there in a moment all the same."""
_LOGGING = Path(__file__).parents[1] / "log4j2.properties"


def session_conf(
    source: LakeConfig | Mapping[str, Any] | str | Path | None,
    *,
    catalog: str = CATALOG,
    quiet: bool = True,
) -> dict[str, str]:
    """Every Spark setting that queries need, ``[spark] conf`` on top.

    With ``quiet``, Spark logs errors only, and a Connect server's clients are shown an error
    without the JVM's stack behind it. Fetches the jars on first use.
    """
    config = load_settings(source) if isinstance(source, str) else LakeConfig.load(source)
    jars = session_jars(_groups(config), config.spark.jars_mirror)
    conf = {
        "spark.driver.extraClassPath": class_path(jars),
        "spark.sql.extensions": _EXTENSIONS,
        f"spark.sql.catalog.{catalog}": _SHIM,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # "${env:…}" in a query would show the environment, and so a topic that is named so.
        "spark.sql.variable.substitute": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if quiet:
        conf["spark.sql.connect.serverStacktrace.enabled"] = "false"
    if config.spark.delta:
        conf |= _DELTA
    path = settings_file(source)
    if path is not None:
        conf[f"spark.sql.catalog.{catalog}.config"] = path
    if config.spark.master.startswith("local"):
        conf |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": _half_of_memory(most_gib=4),
            "spark.sql.shuffle.partitions": "16",
            "spark.python.daemon.module": "spark_ext.datasource.python_daemon",
        }
    else:
        conf["spark.jars"] = ",".join(map(str, jars))
    # Defaults: Spark puts a user's spark.driver.extraJavaOptions behind them.
    options = _COMPILER if config.spark.master.startswith("local") else ""
    options += f" -Dlog4j2.configurationFile={_LOGGING.as_uri()}" if quiet else ""
    given = config.spark.conf.get(_OPTIONS, "")
    conf |= _storage_conf(config) | config.spark.conf
    redacted = config.spark.conf.get(_REDACTION)
    return conf | {
        _OPTIONS: f"{options} {given}".strip(),
        _REDACTION: f"{REDACTED}|{redacted}" if redacted else REDACTED,
    }


def _groups(config: LakeConfig, *, any_storage: bool = False) -> tuple[str, ...]:
    spark = config.spark
    return groups_for(config.storage.uri, spark.conf, delta=spark.delta, any_storage=any_storage)


def archive_classes(config: LakeConfig) -> list[Path]:
    """Make the archives from which sessions start sooner, those that are not there yet.

    Without a storage in the settings: one for each set of jars that a storage may need. Raises
    PulsarLakeError or OSError where one cannot be made: sessions start without it, too.
    """
    from spark_ext.session.class_archive import make_archive

    conf = session_conf(config)
    paths = [conf["spark.driver.extraClassPath"]]
    if not config.storage.uri:
        jars = session_jars(_groups(config, any_storage=True), config.spark.jars_mirror)
        paths.append(class_path(jars))
    return [
        make_archive(conf | {"spark.driver.extraClassPath": one}) for one in dict.fromkeys(paths)
    ]


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


def forget_ended_session() -> bool:
    """Whether this process's JVM has ended by itself; then the next session starts another."""
    from spark_ext.session.jvm import forget_ended_jvm

    return forget_ended_jvm()


def catalog_settings(session: Any, catalog: str) -> LakeConfig:
    """The settings that a catalog of the session reads by, whatever the session says now.

    Raises ConfigurationError for settings that cannot be read, and what Spark raises for a catalog
    that it cannot load.
    """
    return load_settings(_catalog(session, catalog).config())


def _catalog(session: Any, name: str) -> Any:
    spark = session._jsparkSession  # noqa: SLF001 - no other way
    # A catalog is loaded by the settings of the session that is active in the JVM's thread.
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark)
    return spark.sessionState().catalogManager().catalog(name)


def _settings_of(session: SparkSession) -> LakeConfig | None:
    try:
        return catalog_settings(session, CATALOG)
    except ConfigurationError:
        return None  # its file is gone


def _storage_conf(config: LakeConfig) -> dict[str, str]:
    return open_storage(config.storage).spark_conf() if config.storage.uri else {}


def _beside(running: SparkSession, config: LakeConfig) -> SparkSession:
    _require_jars(running, config)
    session = running.newSession()
    path = settings_file(config)
    # This process may choose them; what only runs SQL may not (StartUp.java).
    session._jvm.io.pulsarlake.spark.catalog.StartUp.allow([path])  # type: ignore[union-attr]
    session.conf.set(f"spark.sql.catalog.{CATALOG}.config", path or "")
    for key, value in _storage_conf(config).items():
        session.conf.set(key.removeprefix("spark.hadoop."), value)
    # Now: df.writeTo would load it by the settings of the session that happens to be active.
    try:
        _catalog(session, CATALOG)
    finally:
        running._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(  # type: ignore[union-attr]
            running._jsparkSession  # noqa: SLF001 - no other way
        )
    return session


def _require_jars(session: SparkSession, config: LakeConfig) -> None:
    """A JVM keeps the class path that the first session of its process gave it."""
    needed = {one.name: one.implementation for one in map(CONNECTORS.get, _groups(config)) if one}
    if config.spark.delta:
        needed["Delta"] = _DELTA["spark.sql.catalog.spark_catalog"]
    utils: Any = session._jvm.org.apache.spark.util.Utils  # type: ignore[union-attr]
    for name, implementation in needed.items():
        if not utils.classIsLoadable(implementation):
            raise ConfigurationError(
                f"this process's Spark has been started without the jars for {name}",
                hint=f"make the session that needs {name} first, or in a process of its own",
            )


def _start(config: LakeConfig, app_name: str, quiet: bool) -> SparkSession:
    from pyspark import SparkConf
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from spark_ext.session.class_archive import archive_options
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
    if config.spark.class_archive and config.spark.master.startswith("local"):
        archived = archive_options(conf["spark.driver.extraClassPath"])
        conf[_OPTIONS] = f"{archived} {conf[_OPTIONS]}".strip()
    settings = SparkConf().setAll(list(conf.items()))
    # Secrets are set once the JVM runs, not on its command line.
    shown = SparkConf().setAll([one for one in conf.items() if not _SECRET.search(one[0])])
    try:
        launch_jvm(shown, safe_path(sys.path), quiet=quiet)
        session = SparkSession.Builder().config(conf=settings).getOrCreate()
    except PulsarLakeError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"Spark could not be started: {_first_line(error)}",
            hint="check Java (17 or newer) and the settings of [spark]",
        ) from error
    try:
        _require_jars(session, config)  # the JVM may be that of a session that was stopped
    except ConfigurationError:
        session.stop()
        raise
    return session


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
