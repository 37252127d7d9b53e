"""Iceberg tables that follow, with real servers, processes and other engines.

    engines         other engines in environments of their own, fetched once, and their programs
    filtered_rows   files that differ in what they hold of each type, and conditions on each column
    hive_metastore  Hive's metastore on loopback, of Spark's own jars
    rest_server     a REST catalog on loopback: Apache's handlers behind the JDK's HTTP server
    typed_rows      a table with a column of each type

What needs other engines, or servers that are built here, is long.
"""
