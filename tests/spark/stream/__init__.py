"""Streams on the real cluster.

    runs  streams that end by themselves
"""
