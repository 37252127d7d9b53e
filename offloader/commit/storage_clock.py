"""Whether the clocks of this host and of the storage agree.

Row expiry goes by this host's clock, vacuum compares it with times of the storage, and snapshots of
Iceberg's are made and expire by it. A host that is ahead would delete too early, irrecoverably: so
the storage's time is checked first.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from reader.errors import UnavailableError, plain_text
from reader.model import Topic
from reader.storage import Storage

__all__ = ["check_clock", "storage_clock_ms"]

_FILE = "_pulsarlake_clock"  # what begins with _ is not data, in Delta's words

_APART_MS = 5 * 60_000


def storage_clock_ms(storage: Storage, topic: Topic) -> int | None:
    """The time (ms since the epoch) that a file gets that is written now to the topic's table.

    None: the storage does not say. Raises UnavailableError.
    """
    filesystem, directory = storage.directory(topic)
    path = f"{directory}/{_FILE}"
    try:
        with filesystem.open_output_stream(path) as sink:
            sink.write(b"Written to read the storage's clock: offloader/commit/storage_clock.py\n")
        info = filesystem.get_file_info(path)
    except (OSError, pa.ArrowException) as error:
        raise UnavailableError(
            f"cannot write {path}: {plain_text(error)}",
            hint="check storage.uri, storage.options and the permission to write",
        ) from error
    return None if info.mtime_ns is None else int(info.mtime_ns) // 1_000_000


def check_clock(
    host_ms: Callable[[], int],
    storage_ms: Callable[[], int | None],
    refused: str = "maintenance does not run, because it might delete too early",
) -> None:
    """Raises UnavailableError where they are more than five minutes apart.

    ``refused``: what does not happen then, and why.
    """
    before, there, after = host_ms(), storage_ms(), host_ms()
    if there is None:
        return
    apart = max(before - there, there - after)
    if apart > _APART_MS:
        raise UnavailableError(
            f"the clocks of this host and of the storage are {apart / 60_000:.0f} minutes apart: "
            f"{refused}",
            hint="synchronise both by NTP",
        )
