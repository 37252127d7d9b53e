"""Whether a storage's put-if-absent really is one, shown before anything depends on it.

Each commit, and each decision of a write, is a put that only one of several may win. A store that
takes the condition and ignores it would let two offloaders both win: rows lost, or twice.
"""

import time
import uuid
from contextlib import suppress

from reader.errors import ConfigurationError, UnavailableError
from reader.storage.objects import Objects


def require_exclusive_put(objects: Objects, place: str) -> None:
    """Put one object twice: the second has to be refused.

    It lies at ``~check-…``, as what ``pulsar-lake check`` writes, which cleans up what a killed
    process left. ``place`` names the storage in errors. Raises ConfigurationError where both were
    taken, UnavailableError where the store does not answer.
    """
    path = f"~check-{int(time.time())}-{uuid.uuid4().hex[:8]}/put"
    first, second = b"first\n", b"second\n"
    try:
        # A retry may meet what it has written itself: what is there decides.
        objects.put_if_absent(path, first)
        if objects.get(path) != first:
            raise UnavailableError(f"{place} does not give back what was put there")
        taken = objects.put_if_absent(path, second)
        if taken or objects.get(path) != first:
            raise ConfigurationError(
                f"{place} takes a put-if-absent of what is there: two offloaders would lose or "
                "double rows",
                hint="use a storage, or a version of it, with conditional puts (S3: If-None-Match: "
                "*; GCS: x-goog-if-generation-match: 0), and no proxy that drops the header",
            )
    finally:
        with suppress(UnavailableError):  # who only offloads need not be allowed to delete
            objects.delete([path])
