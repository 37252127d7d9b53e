"""The client of Pulsar's binary protocol, against a broker that fails on demand.

fake_broker   a broker of one topic on a real socket
    fake_topic    what that broker stores of producers, with deduplication
    reads         what the tests read
"""
