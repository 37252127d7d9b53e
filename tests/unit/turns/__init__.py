"""Whole turns and queries over a Pulsar in this process, without Spark.

pulsar_world  a Pulsar of one topic over HTTP and a socket, with entries as bookies have them
small_pulsar  a Pulsar of one topic, with the offloader and queries around it
"""
