"""The jars Spark needs beside pyspark's own: Delta, S3A and the catalog shim.

    __main__  fills the cache before the first query
    build     what Maven gives, checked, then one atomic rename
    hashes    SHA-256 of each jar

``jars_directory`` returns a folder of the cache that holds exactly these. The first call fills it
with Maven (pinned pom and hashes beside this file, about 30 MB) and needs the network or a warm
local Maven repository; later ones touch neither Maven nor the network. The folder is named by a
hash of the pom, the hashes and the shim's sources, so that each version of the project has its own
jars.

A wheel may ship the shim compiled (``python -m spark_ext.session.jars --shim spark_ext/jvm``): then
no JDK is needed, only Maven.
"""

from __future__ import annotations

from spark_ext.session.jars.build import (
    build_shim,
    cache_home,
    class_path,
    jars_directory,
    lock_jars,
    prewarm,
    warehouse,
)
from spark_ext.session.jars.hashes import check_jars, write_hashes

__all__ = [
    "build_shim",
    "cache_home",
    "check_jars",
    "class_path",
    "jars_directory",
    "lock_jars",
    "prewarm",
    "warehouse",
    "write_hashes",
]
