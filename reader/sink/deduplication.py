"""Whether a topic's broker drops what it has already, how long it knows that, and when it errs.

Without deduplication nothing is sent exactly once.
"""

import posixpath
import time
from collections.abc import Callable

from reader.clients import Clients
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.model import Partition, Topic

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_REMEMBERED_MS = 3_600_000
"""Time for which each broker remembers a producer's name: by default it does for six hours
(``brokerDeduplicationProducerInactivityTimeoutMinutes``)."""


def refusal_path(manifest: str) -> str:
    """Return where it is noted that a broker has refused an entry of a manifest."""
    return manifest.removesuffix(".manifest") + ".refused"


class Refusals:
    """The note that a broker has refused an entry of a manifest.

    If it has stored one behind it, it takes the refused entry for a repeated one from then on.
    Reading the target shows that it is missing, until consumers have had the entries behind it and
    Pulsar has deleted them. So the refusal is noted beside the manifest, for later attempts.
    ``decided``: path of the manifest.
    """

    def __init__(self, clients: Clients, decided: str) -> None:
        self._clients = clients
        self._path = refusal_path(decided)
        self._seen = self._noted = False

    def add(self) -> None:
        """Note a refusal. Raises UnavailableError if the storage does not answer."""
        self._seen = True
        self.note()

    def note(self) -> None:
        """Note what could not be noted before. Raises UnavailableError."""
        if self._seen and not self._noted:
            self._clients.storage.objects().put(self._path, b"")
            self._noted = True

    def are_known(self) -> bool:
        """Return whether there was one, in this attempt or an earlier one."""
        return self._seen or self._clients.storage.objects().info(self._path) is not None


def is_remembered(clients: Clients, path: str, created: int) -> bool:
    """Return whether brokers still remember everything that was sent of a manifest.

    path: of the manifest, below the storage's root.
    created: when it was decided, in ms since the epoch, by the driver's clock.

    Its age is the difference of two times of the storage, so no clocks of two hosts are compared.
    The driver's time can only make it older: a storage that was restored shows new times. Raises
    UnavailableError.
    """
    objects = clients.storage.objects()
    now_ms, manifest = objects.clock_ms(posixpath.dirname(path)), objects.info(path)
    if manifest is None:
        return False
    return now_ms - min(manifest.written, created) < _REMEMBERED_MS


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
