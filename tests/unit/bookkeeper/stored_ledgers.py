"""Ledgers as bookies store them, what bookies answer of them, and what a read has to give."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reader.model import EntryBlock, LedgerMetadata
from tests.unit.bookkeeper.fake_bookie import BatchScript, answer, batch_answer, stored
from tests.unit.bookkeeper.fake_bookie import Script as SocketScript
from tests.unit.bookkeeper.memory_bookies import MemoryBookies, Replies, Reply, Script

OK, NOLEDGER, NOENTRY, EIO = 0, 402, 403, 501
V2_NOLEDGER, V2_NOENTRY, V2_EIO = 1, 2, 101

Store = Mapping[tuple[int, int], bytes]
"""Entries as they are stored, by ledger and entry."""


def data_of(ledger: int, entry: int) -> bytes:
    return f"{ledger}:{entry} ".encode() * (1 + (entry * 7 + ledger) % 40)


def stored_by(ledgers: Iterable[LedgerMetadata]) -> list[dict[tuple[int, int], bytes]]:
    """What each of the bookies "0" to "3" has of the ledgers' entries."""
    held: list[dict[tuple[int, int], bytes]] = [{} for _ in range(4)]
    for ledger in ledgers:
        for entry in range(ledger.last_entry + 1):
            body = stored(ledger.ledger_id, entry, data_of(ledger.ledger_id, entry))
            for bookie in ledger.replicas(entry):
                held[int(bookie)][ledger.ledger_id, entry] = body
    return held


def content_of(bodies: Iterable[bytes]) -> bytes:
    """The entries of an answer to a range read."""
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def bodies_of(store: Store, ledger: int, first: int, entries: int, size: int) -> list[bytes]:
    """What a bookie answers to a range read: up to a missing entry; one entry at least."""
    bodies: list[bytes] = []
    left = size - 36
    for entry in range(first, first + entries):
        body = store.get((ledger, entry))
        if body is None or (bodies and len(body) + 4 > left):
            break
        left -= len(body) + 4
        bodies.append(body)
    return bodies


def entry_script(store: Store) -> Replies:
    def script(ledger: int, entry: int) -> Reply:
        body = store.get((ledger, entry))
        return Reply(body) if body is not None else Reply(status=NOENTRY)

    return script


def range_script(store: Store) -> Replies:
    def script(ledger: int, first: int, entries: int, size: int) -> Reply:
        bodies = bodies_of(store, ledger, first, entries, size)
        return Reply(content_of(bodies)) if bodies else Reply(status=V2_NOENTRY)

    return script


def memory_bookies(
    ledgers: Iterable[LedgerMetadata],
    entries: Mapping[str, Script] | None = None,
    ranges: Mapping[str, Script] | None = None,
    **options: Any,
) -> MemoryBookies:
    """Bookies "0" to "3" that store ledgers; ``entries`` and ``ranges``: those that do not."""
    stores = stored_by(ledgers)
    return MemoryBookies(
        {str(n): entry_script(store) for n, store in enumerate(stores)} | dict(entries or {}),
        {str(n): range_script(store) for n, store in enumerate(stores)} | dict(ranges or {}),
        **options,
    )


def socket_scripts(store: Store) -> tuple[SocketScript, BatchScript]:
    """What a ``FakeBookie`` sends."""

    def one(request: int, ledger: int, entry: int) -> bytes:
        body = store.get((ledger, entry))
        return answer(request, OK if body is not None else NOENTRY, ledger, entry, body)

    def several(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
        bodies = bodies_of(store, ledger, first, entries, size)
        return batch_answer(request, 0 if bodies else V2_NOENTRY, ledger, first, bodies)

    return one, several


def ledger_of(
    number: int,
    count: int,
    ensemble: Sequence[str] = ("0", "1", "2"),
    quorum: int = 2,
    *,
    changes: tuple[tuple[int, tuple[str, ...]], ...] = (),
    digest: str = "CRC32C",
    length: int = -1,
) -> LedgerMetadata:
    ensembles = ((0, tuple(ensemble)), *changes)
    size = len(ensemble)
    return LedgerMetadata(
        number, "CLOSED", size, quorum, quorum, count - 1, digest, ensembles, length=length
    )


def entries_of(blocks: Iterable[EntryBlock]) -> list[tuple[int, int, bytes]]:
    entries = []
    for block in blocks:
        assert not block.damaged
        ids = block.entry_ids.tolist()
        assert ids == list(range(ids[0], ids[0] + len(ids)))
        for entry, at, size in zip(ids, block.offsets, block.lengths, strict=True):
            entries.append((block.ledger_id, entry, block.arena[at : at + size].tobytes()))
    return entries


def expected(*ranges: tuple[LedgerMetadata, int, int]) -> list[tuple[int, int, bytes]]:
    return [
        (ledger.ledger_id, entry, data_of(ledger.ledger_id, entry))
        for ledger, first, last in ranges
        for entry in range(first, last + 1)
    ]


stored(0, 0, b"")  # compiles the checksum, before any timeout counts
