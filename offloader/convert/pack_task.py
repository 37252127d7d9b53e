"""What runs in Spark's tasks: one pack of splits to one file, straight to the storage.

A pack that fails is tried again where it is, and what it failed with is a value: it is its own
topic's failure, and the files of the others are good.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from offloader.convert import conversion
from offloader.convert.job_rules import is_slow, most_seconds
from reader import errors
from reader.clients import Clients, process_clients
from reader.decode import NO_CHUNKS, ChunkMemory, ChunkSequence, is_incomplete
from reader.model import Position, Split
from reader.plan import SplitsRead
from reader.sources import read_rows

_TRIES = 4

_SLOW_SECONDS = 10.0
"""A pack is tried only twice if that takes so long: a server is silent, and the turn is retried."""

BEGIN_SECONDS = 10.0
"""A task begins no further pack after that: it would keep the results of its job waiting."""


class _OutOfPatienceError(Exception):
    """The pack takes longer than it may."""


def run_packs(
    packs: Iterable[tuple[conversion.ConversionSpec, conversion.Pack]],
    *,
    patience: float,
    clients: Clients | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[conversion.PackOutcome]:
    """Yield what comes of each pack of one task; None for those that are not begun.

    ``patience``: of each pack, see ``try_pack``.
    """
    began, begun = clock(), 0
    for spec, splits in packs:
        if begun and clock() - began > BEGIN_SECONDS:
            yield None
            continue
        begun += 1
        yield try_pack(spec, splits, clients, clock, patience=patience)


def try_pack(
    spec: conversion.ConversionSpec,
    splits: conversion.Pack,
    clients: Clients | None = None,
    clock: Callable[[], float] = time.monotonic,
    *,
    patience: float = math.inf,
) -> conversion.ConvertedPack | errors.PulsarLakeError | conversion.SlowPack:
    """``convert_pack``, or what it failed with the last time.

    ``clock``: seconds, monotonic. ``patience``: seconds after which the pack is given up, once it
    has the next rows; more of a very large one (``most_seconds``).
    """
    began = clock()
    most = most_seconds(patience, conversion.pack_bytes(splits))

    def check() -> None:
        if clock() - began > most:
            raise _OutOfPatienceError

    for tries in range(1, _TRIES + 1):
        try:
            done = convert_pack(spec, splits, clients, check)
            return replace(done, slow=is_slow(clock() - began, conversion.pack_bytes(splits)))
        except _OutOfPatienceError:
            return conversion.SlowPack(clock() - began)
        except (errors.ConfigurationError, errors.UnsupportedError) as error:
            return error
        except errors.PulsarLakeError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - of whatever kind: the others' files are good
            failure = errors.UnavailableError(f"{type(error).__name__}: {errors.plain_text(error)}")
        if tries > 1 and clock() - began > _SLOW_SECONDS:
            break
    return failure


def convert_pack(
    spec: conversion.ConversionSpec,
    splits: conversion.Pack,
    clients: Clients | None = None,
    check: Callable[[], None] = lambda: None,
) -> conversion.ConvertedPack:
    """Write the rows of ``splits`` as one file. ``clients``: if not those of this process.

    ``check`` is called when there are rows; what it raises ends the conversion.
    """
    first = splits[0]
    chunks = ChunkMemory()
    clients = clients or process_clients(spec.settings)
    rows = _batches(clients, spec, splits, chunks, check)
    file = spec.writer(clients.storage).write(first.partition.index, first.ledger_id, rows)
    begin = Position(first.ledger_id, first.first_entry)
    plaintext = spec.settings.encryption.store_plaintext
    ends = {
        uuid: one if is_incomplete(one) or (plaintext and _has_sealed(one, begin)) else NO_CHUNKS
        for uuid, one in chunks.items()  # of others, nobody asks for the chunks
    }
    return conversion.ConvertedPack(first.partition, file, ends)


def _has_sealed(sequence: ChunkSequence, end: Position) -> bool:
    """Whether a chunk before ``end`` stayed encrypted here: another task may have opened it."""
    return any(one.encrypted and Position(one.ledger, one.entry) < end for one in sequence)


def _batches(
    clients: Clients,
    spec: conversion.ConversionSpec,
    splits: Sequence[Split],
    chunks: ChunkMemory,
    check: Callable[[], None],
) -> Iterator[tuple[int, pa.RecordBatch]]:
    read = SplitsRead(
        tuple(splits), fall_back=False, decrypt=spec.settings.encryption.store_plaintext
    )
    for batch in read_rows(clients, read, spec.rows, chunks=chunks):
        check()
        yield from _by_ledger(batch)


def _by_ledger(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each ledger; a batch has them in the order of the log."""
    ids = batch.column("__ledgerId").to_numpy()
    first = 0
    for stop in [*(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]:
        if stop > first:
            yield int(ids[first]), batch.slice(first, stop - first)
        first = stop
