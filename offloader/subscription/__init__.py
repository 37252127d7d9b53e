"""Subscription.

gap_tracker          What was seen of each partition's ledgers, so that one that goes uncon
hold                 The hold: a durable subscription that keeps Pulsar from trimming what
retention_checks     Settings of Pulsar that delete messages although the hold is there.
"""

__all__: list[str] = []
