"""The check that the clocks of this host and of the storage agree.

Row expiry goes by this host's clock, vacuum compares it with times of the storage, and snapshots of
Iceberg's are made and expire by it. A host that is ahead would delete too early, irrecoverably: so
the storage's time is checked first.
"""

from collections.abc import Callable

from reader.errors import UnavailableError
from reader.model import Topic
from reader.storage import Storage

_APART_MS = 5 * 60_000


def storage_clock_ms(storage: Storage, topic: Topic) -> int:
    """Return the storage's time in ms since the epoch, as a file in the topic's table would get it.

    Raises UnavailableError; ConfigurationError if this kind of storage can only be read.
    """
    directory = storage.table_uri(topic).removeprefix(storage.root + "/")
    return storage.objects().clock_ms(directory)


def check_clock(
    host_ms: Callable[[], int],
    storage_ms: Callable[[], int],
    refused: str = "maintenance does not run, because it might delete too early",
) -> None:
    """Raises UnavailableError where they are more than five minutes apart.

    ``refused``: what does not happen then, and why.
    """
    before, there, after = host_ms(), storage_ms(), host_ms()
    apart = max(before - there, there - after)
    if apart > _APART_MS:
        raise UnavailableError(
            f"the clocks of this host and of the storage are {apart / 60_000:.0f} minutes apart: "
            f"{refused}",
            hint="synchronise both by NTP",
        )
