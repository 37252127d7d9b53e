"""Ledgers as bookies have them, and what is to come of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from reader.model import EntryBlock, LedgerMetadata
from tests.unit.bookkeeper.fake_bookie import (
    BatchScript,
    FakeBookie,
    Script,
    answer,
    batch_answer,
    stored,
)

__all__ = [
    "EIO",
    "NOENTRY",
    "NOLEDGER",
    "OK",
    "V2_NOENTRY",
    "Store",
    "batch",
    "bookies",
    "data_of",
    "entries_of",
    "expected",
    "ledger_of",
    "single",
    "stored_by",
]

OK, NOLEDGER, NOENTRY, EIO = 0, 402, 403, 501
V2_NOENTRY = 2

Store = Mapping[tuple[int, int], bytes]
"""Entries as they are stored, by ledger and entry."""


def data_of(ledger: int, entry: int) -> bytes:
    return f"{ledger}:{entry} ".encode() * (1 + (entry * 7 + ledger) % 40)


def stored_by(ledgers: Iterable[LedgerMetadata]) -> list[dict[tuple[int, int], bytes]]:
    """What each of the bookies "0", "1" … has of the ledgers' entries."""
    held: list[dict[tuple[int, int], bytes]] = [{} for _ in range(4)]
    for ledger in ledgers:
        for entry in range(ledger.last_entry + 1):
            for bookie in ledger.replicas(entry):
                body = stored(ledger.ledger_id, entry, data_of(ledger.ledger_id, entry))
                held[int(bookie)][ledger.ledger_id, entry] = body
    return held


def single(store: Store) -> Script:
    def script(request: int, ledger: int, entry: int) -> bytes:
        body = store.get((ledger, entry))
        known = OK if body is not None else NOENTRY
        return answer(request, known, ledger, entry, body)

    return script


def batch(store: Store) -> BatchScript:
    def script(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
        found: list[bytes] = []
        left = size - 36
        for entry in range(first, first + entries):
            body = store.get((ledger, entry))
            if body is None or (found and len(body) + 4 > left):
                break
            left -= len(body) + 4
            found.append(body)
        known = 0 if found else V2_NOENTRY
        return batch_answer(request, known, ledger, first, found)

    return script


@contextmanager
def bookies(stores: Iterable[Store]) -> Iterator[tuple[list[FakeBookie], dict[str, str]]]:
    with ExitStack() as stack:
        made = [stack.enter_context(FakeBookie(single(one), batch(one))) for one in stores]
        yield made, {str(n): bookie.address for n, bookie in enumerate(made)}


def ledger_of(
    number: int,
    count: int,
    ensembles: tuple[tuple[int, tuple[str, ...]], ...] = ((0, ("0", "1", "2")),),
    quorum: int = 2,
) -> LedgerMetadata:
    size = len(ensembles[0][1])
    return LedgerMetadata(number, "CLOSED", size, quorum, quorum, count - 1, "CRC32C", ensembles)


def entries_of(blocks: Iterable[EntryBlock]) -> list[tuple[int, int, bytes]]:
    found = []
    for block in blocks:
        assert not block.damaged
        ids = block.entry_ids.tolist()
        assert ids == list(range(ids[0], ids[0] + len(ids)))
        for entry, at, size in zip(ids, block.offsets, block.lengths, strict=True):
            found.append((block.ledger_id, entry, block.arena[at : at + size].tobytes()))
    return found


def expected(*ranges: tuple[LedgerMetadata, int, int]) -> list[tuple[int, int, bytes]]:
    return [
        (ledger.ledger_id, entry, data_of(ledger.ledger_id, entry))
        for ledger, first, last in ranges
        for entry in range(first, last + 1)
    ]


stored(0, 0, b"")  # compiles the checksum, before any timeout counts
