"""What each reader gave in one state, compared with what was published."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.contract.corpus import Kind
from tests.contract.corpus.comparison import check_rows, from_json, ordered
from tests.contract.corpus.world import Outcomes, World
from tests.contract.rows import Row, key_of


@dataclass
class Readings:
    """The outcomes of one state by reader.

    checked: by kind a table that has all that is expected, in the order of the keys.
    """

    world: World
    state: str
    outcomes: dict[str, Outcomes]
    checked: dict[str, pa.Table] = field(default_factory=dict)

    def check(self, kind: Kind) -> None:
        """Compare what all readers gave of one topic.

        Raises ExceptionGroup that names each reader that differs, and how.
        """
        if failure := self.world.failures.get(kind.name):
            raise failure
        failures: dict[str, Exception] = {}
        for reader, outcomes in self.outcomes.items():
            if kind.name in outcomes:
                try:
                    self._check(kind, reader, outcomes[kind.name])
                except Exception as error:  # noqa: BLE001 - the other readers are of interest, too
                    error.add_note(f"reader: {reader}")
                    failures[reader] = error
        if failures:
            names = ", ".join(failures)
            raise ExceptionGroup(f"{kind.name}, {self.state}: {names}", list(failures.values()))

    def table(self, kind: Kind) -> pa.Table:
        """Return the rows of a kind, once they are checked."""
        self.check(kind)
        return self.checked[kind.name]

    def _check(self, kind: Kind, reader: str, outcome: Any) -> None:
        if isinstance(outcome, Exception):
            raise outcome
        known = self.checked.get(kind.name)
        if not isinstance(outcome, pa.Table):
            assert known is not None, "no other reader gave what was expected"
            rows = [from_json(row, known.schema) for row in outcome]
            self._compare(kind, rows)
            return
        table = ordered(outcome)
        if known is not None and table.equals(known):
            return
        if reader == "iceberg":
            # PyIceberg makes empty lists and maps of those that are NULL.
            assert known is not None, "no other reader gave what was expected"
            self._compare(kind, _with_nulls_of(known, table.to_pylist()))
            return
        self._compare(kind, table.to_pylist())
        self.checked.setdefault(kind.name, table)

    def _compare(self, kind: Kind, rows: list[Row]) -> None:
        published = self.world.published[kind.name]
        check_rows(kind, published.place, published.expected, rows)


def _with_nulls_of(known: pa.Table, rows: list[Row]) -> list[Row]:
    """Return rows in which what is empty is NULL, where it is NULL in a table of the same rows."""
    nulls = {key_of(row): [name for name in row if row[name] is None] for row in known.to_pylist()}
    return [
        {
            name: None if value == [] and name in nulls.get(key_of(row), ()) else value
            for name, value in row.items()
        }
        for row in rows
    ]
