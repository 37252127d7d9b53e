"""Topics that are more than a topic: shadows of another one, and those that became scalable.

- A *shadow topic* shows the ledgers of its source. Its rows are the source's, and a hold on it
  keeps nothing: Pulsar deletes what the source does not need. A pattern leaves it out.
- A topic that was *migrated* to a scalable topic of Pulsar 5 is terminated. What it had is
  offloaded; what follows is in segments, which are not read.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from reader.errors import ConfigurationError
from reader.model import Partition, Topic
from reader.plan import migrated_note
from reader.pulsar import PartitionLedgers

_CHECK_SECONDS = 3600.0


class KindReader(Protocol):
    """The part of the admin API that tells what kind of topic one is (``AdminClient``)."""

    def shadow_source(self, topic: Topic) -> str | None: ...

    def is_migrated(self, topic: Topic) -> bool: ...


class TopicKinds:
    """Asks for each topic at first, then each hour. Thread-safe; two threads may ask twice.

    ``named``: topics that were asked for by name, which are offloaded even if they are shadows.
    ``monotonic``: seconds; ``log`` gets each line once, for operators.
    """

    def __init__(
        self,
        admin: KindReader,
        named: Collection[Topic],
        *,
        monotonic: Callable[[], float],
        log: Callable[[str], None],
    ) -> None:
        self._admin = admin
        self._named = frozenset(named)
        self._monotonic = monotonic
        self._log = log
        self._asked: dict[Topic, tuple[float, str | None]] = {}
        self._logged: set[str] = set()

    def left_out(self, topic: Topic) -> str | None:
        """Why a topic is not offloaded: it is a shadow, and was not named. None: it is."""
        return None if topic in self._named else self._shadow(topic)

    def notes(self, topic: Topic, listed: Mapping[Partition, PartitionLedgers]) -> tuple[str, ...]:
        """What is to be known of a topic that is offloaded, a line each."""
        found = [self._shadow(topic)] if topic in self._named else []
        if is_ended(listed):
            found.append(migrated_note(self._admin, topic))
        notes = tuple(one for one in found if one is not None)
        for note in notes:
            self._log_once(note)
        return notes

    def _shadow(self, topic: Topic) -> str | None:
        now = self._monotonic()
        at, note = self._asked.get(topic, (now - _CHECK_SECONDS, None))
        if now - at >= _CHECK_SECONDS:
            note = shadow_note(self._admin, topic, self._log_once)
            self._asked[topic] = now, note
            if note is not None:
                self._log_once(note)
        return note

    def _log_once(self, note: str) -> None:
        if note not in self._logged:
            self._logged.add(note)
            self._log(note)


def is_ended(listed: Mapping[Partition, PartitionLedgers]) -> bool:
    """Whether a partition is terminated, which a migration does to all of them."""
    return any(one.terminated for one in listed.values())


def shadow_note(admin: KindReader, topic: Topic, on_refused: Callable[[str], object]) -> str | None:
    """Return a line about a shadow topic; None if it is no shadow, or if the role may not ask.

    ``on_refused`` gets a line if the role may not ask for the topic's properties.
    """
    try:
        source = admin.shadow_source(topic)
    except ConfigurationError as error:
        on_refused(f"topic {topic} may be a shadow of another one: Pulsar does not tell ({error})")
        return None
    if source is None:
        return None
    return (
        f"topic {topic} is a shadow of {source.removeprefix('persistent://')}: offload that one; a "
        "pattern leaves the shadow out, and its subscription would keep nothing from deletion"
    )
