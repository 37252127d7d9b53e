"""Maintenance without a Pulsar: what is chosen, how rows are merged, when a topic has its turn."""
