"""Ledgers that Pulsar's own tiered storage has offloaded, by the published offloaders.

moved  topics with BookKeeper's copy deleted, and what reads them
"""
