"""Whole turns and queries over a Pulsar in this process, without Spark.

served        the simulated Pulsar, served to the product's own clients
pulsar_world  one topic of it, with entries as bookies have them, and a clock that tests move
small_pulsar  one topic of it, with partitions and ledger ids that tests choose
"""
