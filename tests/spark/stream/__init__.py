"""Streams on the real cluster.

    runs  streams that end by themselves

The rows of a query are what theirs are compared with.
"""
