"""Spark sessions that have the catalog ``pulsar``: their settings, their JVM, their jars.

    builder   sessions with Delta, S3A and the catalog set up
    class_archive  an archive of Spark's classes, from which a JVM starts sooner
    conf      ``python -m spark_ext.session.conf``: the settings for Spark's own shells and servers
    cores     how many cores this process may use, in a container too
    errors    our errors across Spark as data: class, message, hint, context
    handoff   passing a configuration to other processes: the planner, Spark's Python workers
    jars      the jars that Spark needs beside pyspark's own
    jvm       starts Spark's JVM and filters its standard error
    settings  ``[spark]``, and LakeConfig: the reader's sections and Spark's

pyspark is imported when a session is first needed. Nothing here knows a topic or a query. Imports
``reader``.
"""
