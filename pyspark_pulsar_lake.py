"""Where Spark finds ``format("pulsar")``: by a module ``pyspark_*`` with a ``DefaultSource``.

Spark imports every such module of the interpreter whenever any Python data source is looked up.
"""

from __future__ import annotations

from spark_ext.datasource.batch import PulsarDataSource as DefaultSource

__all__ = ["DefaultSource"]
