"""Writes to a real cluster: against Pulsar's own clients, and whatever a broker does meanwhile."""
