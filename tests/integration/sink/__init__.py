"""Writes to a real cluster: against Pulsar's own clients, and whatever a broker does meanwhile.

conftest      clients of the shared cluster
named_writes  writes as a driver and its tasks do them
"""
