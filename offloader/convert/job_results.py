"""The results of a Spark job, with less work for the JVM than PySpark's own ``collect``.

For a small job most of a JVM's work is not the job (pyspark 4.2.0):

- ``collect`` has ``ClosureCleaner`` read the bytecode of RDD and SparkContext, 390 kB, for each
  job. ``collectAsync`` has it read a class of 25 kB.
- PySpark asks for classes by their short names, and for each the JVM looks through all jars, once
  for each package that the class may be in. A name that py4j's view has as an attribute is not
  asked for.
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

_CLASSES = ("PythonRDD", "PythonUtils", "SimplePythonFunction")

T = TypeVar("T")


def keep_classes(context: SparkContext) -> None:
    """Have the classes that each job takes looked for once, not for each job."""
    view: Any = context._jvm
    for name in _CLASSES:
        if name not in vars(view):
            setattr(view, name, getattr(view, name))


def collect(rdd: RDD[T]) -> list[T]:
    """All elements, in order, once its job has ended. Raises what py4j does for one that fails.

    They go through py4j: not for large ones.
    """
    spark: Any = rdd  # what PySpark's own ``collect`` uses of it
    found = spark._jrdd.collectAsync().get()  # noqa: SLF001
    # Not by its iterator, which ends with an exception, of which PySpark asks many questions.
    frames = [bytes(found.get(i)) for i in range(found.size())]
    framed = b"".join(struct.pack("!i", len(one)) + one for one in frames)
    return list(spark._jrdd_deserializer.load_stream(BytesIO(framed)))  # noqa: SLF001
