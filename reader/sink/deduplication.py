"""Whether a topic's broker drops what it has already: without it nothing is sent exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable

from reader.clients import Clients
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.model import Partition, Topic

__all__ = ["require_deduplication"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


def require_deduplication(
    clients: Clients,
    topic: Topic,
    *,
    enable: bool,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Turn it on for the topic if it is not, and wait until each partition's broker has it.

    ``enable``: whether it may be turned on. Raises ConfigurationError where it may not, and
    UnavailableError where brokers do not come round to it within ``pulsar.timeout``.
    """
    admin = clients.admin
    waiting = _not_yet(clients, admin.partitions(topic))
    if not waiting:
        return
    if not enable:
        raise _refused(topic, "enableDeduplication is false")
    try:
        admin.enable_deduplication(topic)
    except ConfigurationError as error:
        raise _refused(topic, error.hint or error.message) from error
    deadline = clock() + clients.settings.pulsar.timeout.total_seconds()
    pause = _FIRST_PAUSE
    while waiting := _not_yet(clients, waiting):
        if clock() >= deadline:
            raise UnavailableError(
                f"deduplication is turned on for {topic}, but not in force on {waiting[0]}",
                hint="see the broker's log; try again",
            )
        sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _not_yet(clients: Clients, partitions: list[Partition]) -> list[Partition]:
    return [one for one in partitions if not clients.admin.deduplicates(one)]


def _refused(topic: Topic, why: str) -> PulsarLakeError:
    return ConfigurationError(
        f"rows can be written to {topic} exactly once only with deduplication, which cannot be "
        f"turned on: {why}",
        hint=f"pulsar-admin topicPolicies set-deduplication-status -e {topic.full_name}, or "
        "option delivery = at-least-once",
    )
