"""Histories of the real scheduler and queue beside servers that fail: each healthy topic has turns.

    servers         brokers, racks of bookies and a storage, with outages of random length
    conversions     a model of the workers of Spark jobs, by the product's own rules
    world           topics, turns and clocks of one history in virtual time, and the bounds
    run             many histories in several processes
    test_liveness   some histories

Turns are events, so an hour takes less than a second. Admin, bookies, Spark and storage are
modelled by how long they take to answer or fail.
"""
