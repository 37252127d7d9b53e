"""Writes to a real cluster, against Pulsar's own clients, and over what a broker may do meanwhile."""
