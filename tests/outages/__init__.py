"""Bookies and brokers that are killed, paused and restarted, on a cluster of this folder's own.

No other test may do so: all others share one Pulsar, in all test processes.
"""
