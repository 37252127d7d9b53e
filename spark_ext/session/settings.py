"""``[spark]``, and the settings of a lake: what queries through Spark need."""

from pydantic import Field

from reader.config import Options, ReadConfig, Section, Url


class SparkConfig(Section):
    """The embedded Spark session: its master and any Spark setting, which may be a secret.

    ``class_archive``: whether a JVM of this machine starts with an archive of Spark's classes, and
    ``pulsar-lake setup`` makes one (``spark_ext.session.class_archive``).
    ``delta``: whether SQL also reads Delta tables by their paths (``delta.`path` ``), through
    ``delta-spark``; topics need none of it.
    ``jars_mirror``: URL of the Maven repository that Spark's jars are fetched from, instead of
    Ivy's default.
    """

    master: str = "local[*]"
    class_archive: bool = True
    delta: bool = False
    jars_mirror: Url = ""
    conf: Options = Field(default_factory=dict, repr=False)


class LakeConfig(ReadConfig):
    """The reader's sections and Spark's; ``LakeConfig.load`` makes one."""

    spark: SparkConfig = SparkConfig()
