"""``pulsar-lake check``: is everything that offloader and queries need as it has to be?

    checklist      which checks there are, in which order, and what each needs
    check_run      runs them side by side, each in bounded time
    outcome        values: check, finding, result
    admin_check    the admin REST
    topic_check    topics, rights, and what Pulsar would delete
    bookie_check   each bookie answers at its address
    broker_check   the brokers' own protocol
    storage_check  objects, and commits that are conditional
    iceberg_check  the catalog of Iceberg's tables, where they are on
    tiered_check   places of Pulsar's own tiered storage
    clock_check    this host's clock, the broker's and the storage's
    machine_check  Java, free space, memory

A check is a function over clients and values that gives a ``Finding``; it changes nothing but a
scratch directory of the storage, and a scratch table of the catalog. Imports
``offloader.schedule``, ``offloader.subscription``, ``offloader.iceberg``, ``offloader.model``,
``offloader.config``, ``spark_ext`` and ``reader``.
"""

from offloader.check.check_run import Run
from offloader.check.checklist import Checklist
from offloader.check.outcome import Result

__all__ = ["Checklist", "Result", "Run"]
