"""The client of Pulsar's binary protocol, against a broker that fails on demand.

fake_broker   a broker of one topic on a real socket
    reads         what the tests read
"""
