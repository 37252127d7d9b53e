"""The jars Spark needs beside pyspark's own: the catalog shim, Delta, the storages' connectors.

    fetch         a session's jars: in the folder and checked, or fetched now
    jar_list      ``jars.lock``: coordinates, SHA-256 and group of each
    ivy           the Ivy that pyspark ships, which fetches them
    shim          the shim's jar: a wheel has it, beside sources it is compiled
    folders       the cache they are in, and who may write there
    lock          ``make lock``: the list anew, with Maven

``session_jars`` returns the files. The first call fetches jars that are missing in the folder, from
Maven's repository on this machine, else from ``spark.jars_mirror`` or Ivy's default. Files that
somebody put into the folder are used as well, after their hashes were checked. Later calls start
nothing and need no network. Files are named by version, so several versions of the project share
the folder.
"""

from spark_ext.session.jars.fetch import class_path, missing_jars, session_jars
from spark_ext.session.jars.folders import cache_home, jars_folder, open_folder, warehouse
from spark_ext.session.jars.jar_list import CONNECTORS, GROUPS, Jar, groups_for, listed
from spark_ext.session.jars.shim import java_lines

__all__ = [
    "CONNECTORS",
    "GROUPS",
    "Jar",
    "cache_home",
    "class_path",
    "groups_for",
    "jars_folder",
    "java_lines",
    "listed",
    "missing_jars",
    "open_folder",
    "session_jars",
    "warehouse",
]
