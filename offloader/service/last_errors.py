"""Each topic's last error in the daemon, for ``status``: a small file on this machine.

The Delta log is the only index: nothing depends on this file, and it may be deleted. One file for
each pair of Pulsar and storage, in ``$PULSAR_LAKE_STATE`` or
``~/.local/state/pulsar-lake``; where it cannot be written, the daemon's log says so once, and
where it cannot be read, ``status`` does.
"""

import errno
import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from reader.errors import ConfigurationError
from reader.model import Topic
from reader.private_directory import check_private, make_private, warn_once

Work = Literal["turn", "maintenance", "Iceberg"]

_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def key_of(topic: Topic, work: Work) -> str:
    """The topic's name for its turns; for other work on it what is not a valid topic name."""
    return topic.local_name if work == "turn" else f"{work} of {topic.local_name}"


@dataclass(frozen=True, slots=True)
class LastError:
    """The last failure of one topic, ``times`` in a row; ``at``, and the next try: seconds since
    the epoch."""

    error: str
    at: float
    times: int
    next_try: float


class LastErrors:
    """The failures of one daemon's topics. Thread-safe; of several processes the last one wins.

    ``admin_url`` and ``storage_uri``: those of the settings, which tell daemons apart. ``clock``:
    seconds since the epoch.
    """

    def __init__(
        self, admin_url: str, storage_uri: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        root = os.environ.get("PULSAR_LAKE_STATE") or "~/.local/state/pulsar-lake"
        name = f"{admin_url} {storage_uri}"
        digest = hashlib.sha256(name.encode()).hexdigest()[:32]
        self._lock = threading.Lock()
        self._path = Path(root).expanduser() / f"offload-{digest}.json"

    def failures(self) -> Mapping[str, LastError]:
        """As ``read``, none where that raises."""
        try:
            return self.read()
        except ConfigurationError:
            return {}

    def read(self) -> Mapping[str, LastError]:
        """``key_of`` a topic and some work → its failure, if the last run failed.

        Raises ConfigurationError where they cannot be read, or others may have written them.
        """
        directory = self._path.parent
        try:
            check_private(directory, shown=True)
            value = json.loads(_text(self._path))
            return {key: _checked(LastError(**one)) for key, one in value.items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(
                f"the offloader's last errors in {directory} are not shown: {error.strerror}",
                hint="ask as its user or root; where others may write, empty it and chmod 700 it",
            ) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigurationError(
                f"the offloader's last errors in {self._path} are not whole", hint="remove the file"
            ) from error

    def failed(self, topic: Topic, error: str, next_try: float, *, work: Work = "turn") -> None:
        """The topic's turn failed, or other work on it."""
        key = key_of(topic, work)
        with self._lock:
            found = dict(self.failures())
            before = found.get(key)
            times = before.times + 1 if before else 1
            found[key] = LastError(error, self._clock(), times, next_try)
            self._write(found)

    def succeeded(self, topic: Topic, *, work: Work = "turn") -> None:
        """The topic's turn, or other work on it, succeeded."""
        key = key_of(topic, work)
        with self._lock:
            found = dict(self.failures())
            if found.pop(key, None) is not None:
                self._write(found)

    def _write(self, found: Mapping[str, LastError]) -> None:
        partial = self._path.with_suffix(f".{os.getpid()}")
        try:
            make_private(self._path.parent)
            partial.write_text(json.dumps({key: asdict(one) for key, one in found.items()}))
            partial.replace(self._path)
        except OSError as error:
            warn_once(
                f"pulsar-lake: last errors are not kept for status in {self._path.parent}: "
                f"{error.strerror} (empty it and chmod 700 it, or set PULSAR_LAKE_STATE)"
            )


def _checked(one: LastError) -> LastError:
    """Raises TypeError or ValueError: another user may have written what root reads."""
    if not (isinstance(one.error, str) and isinstance(one.times, int)):
        raise TypeError("of another type")
    if not all(0 <= at <= _LATEST for at in (one.at, one.next_try)):  # nor is NaN
        raise ValueError("no time")
    return one


def _text(file: Path) -> str:
    """Not through a link, and of no pipe: root reads what another user has put there."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, encoding="utf-8") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        return opened.read()
