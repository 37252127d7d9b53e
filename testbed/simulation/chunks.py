"""Chunked messages of a managed ledger, in the order of its log: what each chunk does.

As Pulsar means them: chunk 0 begins a message, the next one continues it, the last one completes
it, one that was there is sent again, any other belongs to no message. A message that was given up
is over at the end of what was offloaded with that commit: what comes later belongs to no message.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from testbed.simulation.ledgers import Entry, Ledger, ManagedLedger, Position


@dataclass(frozen=True, slots=True)
class ChunkStep:
    """What the chunk at ``position`` does; ``chunks``: those that it makes a row or a part of."""

    uuid: bytes
    position: Position
    ledger: Ledger
    entry: Entry
    outcome: Literal["incomplete", "complete", "again", "stray"]
    chunks: tuple[tuple[Position, bytes], ...]


def follow(ml: ManagedLedger) -> Iterator[ChunkStep]:
    """Each chunk that was ever readable; those that were lost are none."""
    begun: dict[bytes, list[tuple[Position, bytes]]] = {}
    for ledger, number, entry in ml.entries():
        if entry.chunk is None or ledger.lost or entry.transaction in ml.aborted:
            continue
        uuid, k, count = entry.chunk
        chunks = begun.setdefault(uuid, [])
        if chunks and ml.given_up.get(chunks[-1][0], ledger.id) < ledger.id:
            chunks.clear()
        if k == 0:
            chunks.clear()
        at = ledger.id, number
        if k < len(chunks):
            yield ChunkStep(uuid, at, ledger, entry, "again", ())
            continue
        fits = k == len(chunks)
        chunks.append((at, entry.values[0] or b""))
        told = tuple(chunks)
        if not fits:
            yield ChunkStep(uuid, at, ledger, entry, "stray", told)
        elif len(chunks) < count:
            yield ChunkStep(uuid, at, ledger, entry, "incomplete", told)
            continue
        else:
            yield ChunkStep(uuid, at, ledger, entry, "complete", told)
        chunks.clear()


def incomplete_messages(ml: ManagedLedger) -> dict[bytes, Entry]:
    """Chunked messages that have begun and are not complete: uuid → their first chunk."""
    begun: dict[bytes, list[Entry]] = {}
    for _, _, entry in ml.entries():
        if entry.chunk is None or entry.transaction in ml.aborted:
            continue
        uuid, number, count = entry.chunk
        chunks = begun.get(uuid, [])
        if number == 0:
            begun[uuid] = [entry]
        elif number == len(chunks):
            chunks.append(entry)
        if len(begun.get(uuid, ())) == count:
            del begun[uuid]
    return {uuid: chunks[0] for uuid, chunks in begun.items()}


def incomplete_upto(ml: ManagedLedger, ledger_id: int) -> dict[bytes, tuple[Position, Position]]:
    """The messages incomplete at the end of a ledger: uuid → where their first, last chunk is.

    Without those that were given up before.
    """
    found: dict[bytes, tuple[Position, Position]] = {}
    for step in follow(ml):
        if step.ledger.id > ledger_id:
            break
        if step.outcome == "incomplete":
            found[step.uuid] = step.chunks[0][0], step.position
        elif step.outcome != "again":
            found.pop(step.uuid, None)
    return {uuid: ends for uuid, ends in found.items() if ends[1] not in ml.given_up}


def needed_chunks(ml: ManagedLedger) -> dict[bytes, set[int]]:
    """Of messages that no table has, and that were not given up: uuid → ledgers of their chunks."""
    found: dict[bytes, tuple[tuple[Position, bytes], ...]] = {}
    for step in follow(ml):
        if step.outcome == "incomplete" or (step.outcome == "complete" and not step.ledger.cold):
            found[step.uuid] = step.chunks
        elif step.outcome != "again":
            found.pop(step.uuid, None)
    return {
        uuid: {at[0] for at, _ in chunks}
        for uuid, chunks in found.items()
        if chunks[-1][0] not in ml.given_up
    }
