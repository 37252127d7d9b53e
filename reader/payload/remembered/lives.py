"""Which definition a message's schema version means, where a registry has begun anew.

A version number identifies a definition only within one life of the registry. A schema that is
deleted by force begins another life: Pulsar counts from 0 again. (A schema that is deleted without
force does not: the numbers continue.) Rules:

1. A life begins at the timestamp of the first definition that it registered. (A later one may have
   an earlier time, if the broker's clock was set back.) A message of the life was stored after
   that. Within a life the number decides alone, whatever clocks say.
2. When a message was stored is known to within a second if the broker has stamped its entry, and
   to within ``pulsar.clock_difference`` if only its producer has (``reader.decode``). Of a
   replicated message, and of one that claims to be older than its ledger, it is known only that
   it was stored after its ledger was opened.
3. A message that was stored before the first known life has no known definition.
4. A message that may be of several lives has a definition only if the lives agree on its content.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from reader.kernels.array_types import Int64s
from reader.model import SchemaInfo, StoredTimes
from reader.payload.column_types import LIFE


class SchemaLives:
    """The definitions of a topic's schema, by number: the version, plus `LIFE` for each life since.

    In the newest life a definition's number is its version.
    """

    def __init__(self, schemas: Iterable[SchemaInfo]) -> None:
        lives: dict[int, dict[int, SchemaInfo]] = {}
        for info in sorted(schemas, key=lambda info: (info.life, info.version)):
            lives.setdefault(info.life, {})[info.version] = info
        self._lives = list(lives.values())
        begins = [life[min(life)].timestamp for life in self._lives]
        self._starts = np.maximum.accumulate(np.array(begins, np.int64)) * 1000

    @property
    def newest(self) -> dict[int, SchemaInfo]:
        """The definitions of the newest life by version; none if the topic has no schema."""
        return self._lives[-1] if self._lives else {}

    def all(self) -> Iterable[SchemaInfo]:
        """Return the definitions of all lives, the oldest first."""
        return (info for life in self._lives for info in life.values())

    def info(self, number: int) -> SchemaInfo:
        """Return the definition of a number."""
        newer, version = divmod(number, LIFE)
        return self._lives[-1 - newer][version]

    def resolve(
        self, version: int, rows: Int64s, stored: StoredTimes | None
    ) -> list[tuple[Int64s, int | str]]:
        """Return the rows of each definition: its number, or the reason why they have none.

        ``rows`` are messages of ``version``; ``stored``: when all messages were stored, None: that
        is not known of any.
        """
        newest = len(self._lives) - 1
        if stored is None or newest < 0:
            return [(rows, self._among(version, newest, newest))]
        if stored.all_since(int(self._starts[-1]), certainly=newest > 0):
            return [(rows, self._among(version, newest, newest))]
        first, last = stored.periods(self._starts, rows)
        first = np.maximum(first, 0)
        found = []
        for pair in np.unique(np.stack((first, last)), axis=1).T.tolist():
            own = rows[(first == pair[0]) & (last == pair[1])]
            found.append((own, self._among(version, *pair)))
        return found

    def _among(self, version: int, first: int, last: int) -> int | str:
        """Return the definition's number in the lives from ``first`` to ``last``, or a reason."""
        if not self._lives or (last < 0 and version not in self._lives[0]):
            return _not_registered(version)
        if last < 0:
            return (
                f"schema version {version} was registered after the message was published "
                "(if the producer's clock was behind: pulsar.clock_difference)"
            )
        there = [life for life in range(first, last + 1) if version in self._lives[life]]
        if not there:
            return _not_registered(version)
        definitions = [self._lives[life][version] for life in there]
        if any(not one.same_content(definitions[-1]) for one in definitions[:-1]):
            return (
                f"schema version {version} was deleted and registered anew at about the time when "
                "the message was published: which definition it has is not certain"
            )
        return version + LIFE * (len(self._lives) - 1 - there[-1])


def _not_registered(version: int) -> str:
    return f"schema version {version} is not in the registry"


def remember(known: Sequence[SchemaInfo], listed: Sequence[SchemaInfo]) -> tuple[SchemaInfo, ...]:
    """Return the definitions of ``known`` and those that the registry lists now.

    What is listed continues the newest known life if it has the same definitions under the same
    numbers, apart from deleted ones, which precede it. Otherwise it is another life.
    """
    if not listed:
        return tuple(known)
    life = max((info.life for info in known), default=0)
    newest = {info.version: info for info in known if info.life == life}
    now = {info.version: info.of_life(life) for info in listed}
    first = min(now)
    if all(now[version] == info if version in now else version < first
           for version, info in newest.items()):  # fmt: skip
        older = [info for info in known if info.life != life or info.version not in now]
        return (*older, *(now[version] for version in sorted(now)))
    return (*known, *(now[version].of_life(life + 1) for version in sorted(now)))
