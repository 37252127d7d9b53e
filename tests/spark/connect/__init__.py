"""Spark Connect: a server with nothing but our properties file, and clients without a JVM.

actions       what a client does, in its own process
client        such a process: asked by a line, it answers with a line
rows_as_json  rows of many tables by one query; needs pyspark alone
"""
