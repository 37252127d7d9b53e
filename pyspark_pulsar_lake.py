"""The name ``pulsar`` among Spark's formats: a module ``pyspark_*`` with a ``DefaultSource``.

The shim's rules replace each ``format("pulsar")`` by topics of the catalog (``ReadNames.java``,
``WriteNames.java``). Spark looks a writer's format up before them. It imports every such module of
the interpreter whenever it looks up a Python data source.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource

from reader.errors import ConfigurationError
from spark_ext.session.errors import carried

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """A format that is used in a session without the shim's rules."""

    def __init__(self, options: Mapping[str, str]) -> None:
        with carried():
            raise ConfigurationError(
                'this session does not have the rules for format("pulsar")',
                hint="they and the catalog pulsar are set before Spark starts: use "
                "spark_ext.build_session, or what python -m spark_ext.session.conf prints",
            )

    @classmethod
    def name(cls) -> str:
        return "pulsar"
