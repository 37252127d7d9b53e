"""``[spark]``, and the settings of a lake: what queries through Spark need."""

from __future__ import annotations

from pydantic import Field

from reader.config import ReadConfig, Section

__all__ = ["LakeConfig", "SparkConfig"]


class SparkConfig(Section):
    """The embedded Spark session: its master and any Spark setting, which may be a secret."""

    master: str = "local[*]"
    conf: dict[str, str] = Field(default_factory=dict, repr=False)


class LakeConfig(ReadConfig):
    """The reader's sections and Spark's; ``LakeConfig.load`` makes one."""

    spark: SparkConfig = SparkConfig()
