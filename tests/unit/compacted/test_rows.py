"""The rows of compacted ledgers: each behind its position, one ledger after the other."""

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from reader.errors import CorruptError, NotFoundError, UnavailableError
from reader.model import EntryBlock, Partition, Position
from reader.model.columns import METADATA
from reader.plan import CompactedPart
from reader.pulsar import CompactedLedger
from reader.sources import RowFormat
from reader.sources.compacted import read_compacted
from reader.sources.compacted.raw_messages import unwrapped
from reader.wire import encoded
from tests.unit.decode.entries import entry
from tests.unit.sources.splits import PARTITION, metadata_of

BEFORE_ALL = Position(-1, -1)
COLUMNS = pa.schema([METADATA.field("__ledgerId"), METADATA.field("__entryId")])
ROWS = RowFormat(pa.schema([]), (), COLUMNS)


def wrapped(ledger: int, number: int, data: bytes | None = None) -> bytes:
    """As Pulsar's compaction writes it."""
    position = encoded((1, ledger), (2, number), (3, -1))
    data = entry(b"x") if data is None else data
    return struct.pack(">I", len(position)) + position + struct.pack(">I", len(data)) + data


def test_entries_come_out_with_their_positions() -> None:
    found = {0: wrapped(5, 3, b"a"), 1: wrapped(5, 9, b"bc"), 2: wrapped(1 << 40, 0, b"d")}
    blocks = list(unwrapped(EntryBlock.of(33, found), BEFORE_ALL))
    assert [
        (block.ledger_id, int(number), block.arena[at : at + length].tobytes())
        for block in blocks
        for number, at, length in zip(block.entry_ids, block.offsets, block.lengths, strict=True)
    ] == [(5, 3, b"a"), (5, 9, b"bc"), (1 << 40, 0, b"d")]
    (rest,) = unwrapped(EntryBlock.of(33, found), Position(5, 9))
    assert rest.ledger_id == 1 << 40


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\x05ab",
        b"\0\0\0\x01\x08" + wrapped(5, 3),
        wrapped(5, 3)[:-1],
        wrapped(5, 3) + b"x",
        wrapped(-1, 3),
        wrapped(5, -1),
        b"\xff" * 40,
    ],
)
def test_what_is_not_in_its_form_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptError, match="entry 33:0 of a compacted ledger"):
        list(unwrapped(EntryBlock.of(33, {0: data}), BEFORE_ALL))


def test_a_damaged_entry_is_corrupt() -> None:
    block = replace(EntryBlock.of(33, {0: wrapped(5, 3)}), damaged={0: "digest"})
    with pytest.raises(CorruptError, match="digest"):
        list(unwrapped(block, BEFORE_ALL))


class Pulsar:
    """``ledgers``: (ledger, entry) of each message that a compacted ledger has, by its id.

    ``newest``: the compacted ledger at each question, -1 for none; ``upto``: where it ends;
    ``shown``: whether the broker has opened it.
    """

    def __init__(
        self,
        ledgers: Mapping[int, list[tuple[int, int]]],
        newest: list[int],
        *,
        upto: str = "9:9",
        shown: bool = True,
    ) -> None:
        self.ledgers, self.newest = ledgers, newest
        self.upto, self.shown = Position.parse(upto), shown
        self.deleted_after: dict[int, int] = {}
        self.settings: Any = None
        self.admin: Any = self

    def decryption(self, topic: object) -> None:
        return None

    def compacted(self, partition: Partition) -> CompactedLedger | None:
        ledger = self.newest.pop(0) if len(self.newest) > 1 else self.newest[0]
        if ledger < 0:
            return None
        made = replace(metadata_of(ledger, "b"), last_entry=len(self.ledgers[ledger]) - 1)
        found = made if self.shown else None
        return CompactedLedger(ledger, len(self.ledgers[ledger]), found, self.upto)

    @contextmanager
    def bookies(self) -> Iterator[Any]:
        yield SimpleNamespace(read=self._read)

    def _read(self, ledger: Any, first: int, last: int) -> Iterator[EntryBlock]:
        for number in range(first, last + 1):
            if number == self.deleted_after.get(ledger.ledger_id):
                raise NotFoundError("no such ledger")
            place = self.ledgers[ledger.ledger_id][number]
            yield EntryBlock.of(ledger.ledger_id, {number: wrapped(*place)})


def part(before: int, end: str = "9:9", ledger: int = 33, entries: int = 0) -> CompactedPart:
    """The part of a snapshot; ``entries``: those of its compacted ledger, 0: it is not known."""
    made = replace(metadata_of(ledger, "b"), last_entry=entries - 1) if entries else None
    known = CompactedLedger(ledger, entries, made, Position(9, 9))
    return CompactedPart(PARTITION, before, before, known, Position.parse(end))


def rows(pulsar: Any, part: CompactedPart) -> list[tuple[int, int]]:
    found = pa.Table.from_batches(read_compacted(pulsar, part, ROWS), COLUMNS)
    return [tuple(one.values()) for one in found.to_pylist()]


def test_the_rows_below_a_ledger() -> None:
    pulsar = Pulsar({33: [(5, 0), (5, 7), (6, 1), (8, 0), (8, 1)]}, [33])
    assert rows(pulsar, part(8)) == [(5, 0), (5, 7), (6, 1)]
    assert rows(pulsar, part(9)) == [(5, 0), (5, 7), (6, 1), (8, 0), (8, 1)]
    assert rows(pulsar, part(5)) == []


def test_a_ledger_that_is_replaced_meanwhile_is_read_on_in_the_newer_one() -> None:
    pulsar = Pulsar({33: [(5, 0), (5, 7), (6, 1)], 40: [(5, 7), (6, 1), (6, 2)]}, [33, 40])
    pulsar.deleted_after = {33: 1}
    assert rows(pulsar, part(9)) == [(5, 0), (5, 7), (6, 1), (6, 2)]


def test_a_compaction_of_what_follows_the_snapshot_takes_no_key_out() -> None:
    """The key of 5:0 was published again at 12:0; the snapshot ends before that."""
    pulsar = Pulsar({33: [(5, 0), (6, 1)], 40: [(6, 1), (12, 0)]}, [40], upto="12:0")
    assert rows(pulsar, part(8, entries=2)) == [(5, 0), (6, 1)], "bookies have it for a while"
    for gone in (0, 1):
        pulsar.deleted_after = {33: gone}
        with pytest.raises(NotFoundError, match="no other one ends at 9:9") as caught:
            rows(pulsar, part(8, entries=2))
        assert "make the query anew" in (caught.value.hint or "")
    with pytest.raises(NotFoundError, match="ends behind the query's snapshot"):
        rows(pulsar, part(8))


def test_what_is_gone_is_an_error() -> None:
    pulsar = Pulsar({33: [(5, 0), (5, 7)]}, [33])
    pulsar.deleted_after = {33: 1}
    with pytest.raises(NotFoundError, match=r"compacted ledger 33 .* is gone"):
        rows(pulsar, part(9))
    with pytest.raises(NotFoundError, match="ends behind"):
        rows(Pulsar({}, [-1]), part(9))


def test_a_ledger_that_the_broker_does_not_show() -> None:
    """The snapshot's own is read where it was seen; else it is an error."""
    pulsar = Pulsar({33: [(5, 0), (6, 1)]}, [33], shown=False)
    assert rows(pulsar, part(8, entries=2)) == [(5, 0), (6, 1)]
    with pytest.raises(UnavailableError, match="does not show the compacted ledger"):
        rows(pulsar, part(8))
