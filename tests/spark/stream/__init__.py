"""Streams on the real cluster.

    runs      streams that end by themselves, and such that run on
    moves     a topic whose messages move: to files, and to compacted ones
    sinks     what a stream program has written, and had to write
    stateful  queries with state, and what they must give

The rows of a query are what theirs are compared with.
"""
