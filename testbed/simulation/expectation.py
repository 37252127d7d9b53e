"""The plain list: which rows a query has to give, by what was published. Knows no product code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from testbed.simulation.chunks import follow
from testbed.simulation.cluster_state import SimulatedTopic
from testbed.simulation.ledgers import Entry, Ledger, ManagedLedger

Place = tuple[int, int, int, int]
"""Partition, ledger, entry, batch index."""


class RowKind(Enum):
    """What a row is: a message, or a rescued row of chunks that no message has."""

    MESSAGE = "message"
    STRAY = "stray"
    GIVEN_UP = "given up"
    UNEXPECTED = "unexpected"


Row = tuple[Place, bytes | None, RowKind]
"""Where it is, its value, what it is; of a rescued row the bytes that were rescued."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """``required``: each exactly so often. ``optional``: places that may have a row, once.

    ``published``: µs, of each place.
    """

    required: Counter[Row]
    optional: frozenset[Place]
    published: Mapping[Place, int]

    def difference(self, found: Iterable[Row]) -> str:
        """What is wrong with the rows of a query; "" for nothing."""
        rows = Counter(found)
        return "; ".join(filter(None, (self.missing(rows), self.too_many(rows))))

    def missing(self, rows: Counter[Row]) -> str:
        """Which of those that have to be there are not; "" for none."""
        wrong = (self.required - rows).items()
        return "; ".join(
            sorted(f"missing {n} x {row}" for row, n in wrong if row[0] not in self.optional)
        )

    def too_many(self, rows: Counter[Row]) -> str:
        """Which may not be there, or not so often; "" for none."""
        wrong = []
        for row, count in (rows - self.required).items():
            many = sum(n for other, n in rows.items() if other[0] == row[0])
            if row[0] not in self.optional or many > 1:
                wrong.append(f"{count} too many of {row}")
        return "; ".join(sorted(wrong))

    def without(self, before_ms: int | None) -> Expectation:
        """The same where rows published before a time may have expired."""
        if before_ms is None:
            return self
        old = {place for place, at in self.published.items() if at < before_ms}
        return Expectation(self.required, self.optional | old, self.published)

    def without_table(self) -> Expectation:
        """Of Pulsar alone: what was given up is no row, what comes later may complete it."""
        kept = Counter({row: n for row, n in self.required.items() if row[2] is RowKind.MESSAGE})
        strays = {row[0] for row in self.required if row[2] is RowKind.STRAY}
        return Expectation(kept, self.optional | strays, self.published)

    def since(self, published_us: int | None) -> Expectation:
        """Rows published at a time or later; None: all."""
        if published_us is None:
            return self
        late = Counter(
            {
                row: count
                for row, count in self.required.items()
                if self.published[row[0]] * 1000 >= published_us
            }
        )
        return Expectation(late, self.optional, self.published)

    def count(self) -> tuple[int, int]:
        """How many rows there are at least, and at most."""
        required = sum(n for (place, *_), n in self.required.items() if place not in self.optional)
        return required, self.required.total() + len(self.optional)


def expected_rows(topic: SimulatedTopic) -> Expectation:
    """All rows of the topic now: what Pulsar has and readers may see, and what was offloaded."""
    required: Counter[Row] = Counter()
    optional: set[Place] = set()
    published: dict[Place, int] = {}
    for ml in (*topic.gone, *topic.parts.values()):
        there = ml in topic.parts.values()
        end = ml.max_read if there else (-1, -1)
        for row, ledger, entry, sure in published_rows(ml):
            place = row[0]
            seen = ledger.cold or (there and not ledger.deleted and (ledger.id, place[2]) <= end)
            if not seen:
                continue
            published[place] = entry.publish_ms
            if sure:
                required[row] += 1
            else:
                optional.add(place)
    return Expectation(required, frozenset(optional), published)


def published_rows(ml: ManagedLedger) -> Iterable[tuple[Row, Ledger, Entry, bool]]:
    """All rows that a partition ever had: (row, ledger, entry, whether it has to be exactly so)."""
    for ledger, number, entry in ml.entries():
        aborted = entry.transaction is not None and entry.transaction in ml.aborted
        if entry.chunk is not None or ledger.copied or aborted:
            continue
        for index, value in enumerate(entry.values):
            at = index if entry.batch else -1
            row = (ml.index, ledger.id, number, at), value, RowKind.MESSAGE
            yield row, ledger, entry, True
    for step in follow(ml):
        if step.ledger.copied:
            continue
        place = (ml.index, *step.position, -1)
        own, whole = step.chunks[-1][1] if step.chunks else b"", b"".join(b for _, b in step.chunks)
        rescued = step.entry.data[: len(step.entry.data) - len(own)] + whole
        if step.uuid in ml.broken or (ml.restored and step.uuid in ml.overdue):
            yield (place, None, RowKind.STRAY), step.ledger, step.entry, False
        elif step.outcome == "complete":
            yield (place, whole, RowKind.MESSAGE), step.ledger, step.entry, True
        elif step.outcome == "stray":
            yield (place, rescued, RowKind.STRAY), step.ledger, step.entry, True
        elif step.position in ml.given_up:
            yield (place, rescued, RowKind.GIVEN_UP), step.ledger, step.entry, True
