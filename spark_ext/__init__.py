"""Pulsar's topics as tables of Spark.

    lake        PulsarLake: the library's front door
    key_order   messages of one key in one task, in order
    statement   one SQL statement that runs: its rows in batches, its progress, its end
    planner     the process that answers Spark's JVM, and what a name stands for
    datasource  the data source "pulsar", and what Spark's Python workers run
    session     sessions, settings, the JVM, jars, errors as data
    without_pandas  keeps pandas out of processes that never show a data frame
    ddl         Arrow types as Spark's DDL text

``jvm`` is the catalog shim in Java, ``log4j2.properties`` the log settings of embedded sessions.
Imports ``reader``, never ``offloader``. Importing this package is cheap: pyspark is loaded when a
session is first needed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_ext.key_order import by_key
    from spark_ext.lake import PulsarLake
    from spark_ext.session.builder import build_session
    from spark_ext.session.errors import error_of

__all__ = ["PulsarLake", "build_session", "by_key", "error_of"]


def __getattr__(name: str) -> Any:
    # Late, because Spark's Python workers import this package for one module of it.
    if name == "PulsarLake":
        from spark_ext.lake import PulsarLake

        return PulsarLake
    if name == "by_key":
        from spark_ext.key_order import by_key

        return by_key
    if name == "build_session":
        from spark_ext.session.builder import build_session

        return build_session
    if name == "error_of":
        from spark_ext.session.errors import error_of

        return error_of
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
