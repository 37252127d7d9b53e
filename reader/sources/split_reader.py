"""Splits read one after the other, each from whichever source can give it, as ``fallback`` says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from threading import Event

import pyarrow as pa

from reader.closing import Closing
from reader.config import PulsarConfig, QueryConfig
from reader.decode import ChunkSequence
from reader.errors import NotFoundError, PulsarLakeError
from reader.model import LedgerIdentity, LedgerMetadata, Split
from reader.plan import LearnedTimes, PublishTimeStore
from reader.prefetch import Prefetched
from reader.sources.base import Delivered, PublishRange, RowSource, Step
from reader.sources.bookkeeper import BookKeeperEntries
from reader.sources.broker import BrokerRows
from reader.sources.delta import MovedLedger
from reader.sources.entry_rows import EntryRows
from reader.sources.fallback import Failure, LedgerNow, Stage, failure_of, first_stage, next_stage
from reader.sources.rows import RowFormat
from reader.sources.source_clients import SourceClients

__all__ = [
    "ListLedger",
    "SplitReader",
    "ledger_now",
    "read_in_order",
    "read_split",
    "read_splits",
]

ListLedger = Callable[[Split], tuple[LedgerNow, LedgerMetadata | None]]
"""What Pulsar says now of a split's ledger, and its metadata."""


def read_split(
    clients: SourceClients,
    split: Split,
    rows: RowFormat,
    *,
    publish_range: PublishRange = (None, None),
    fall_back: bool = True,
    decrypt: bool = True,
    chunks: dict[bytes, ChunkSequence] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The split's rows in order; batches have exactly ``rows.columns``.

    ``publish_range`` (µs, inclusive) drops whole entries early; the caller still filters.
    ``fall_back=False`` keeps to the split's tier, for offloading: a row must not lose columns
    because a bookie was slow. ``decrypt=False`` leaves encrypted entries as they are, whatever keys
    are configured. ``chunks`` collects how far chunked messages have come, by uuid.
    Raises what the last source raises that can be asked (``RowSource.read``).
    """
    for _, batch in read_splits(
        clients,
        [split],
        rows,
        publish_range=publish_range,
        fall_back=fall_back,
        decrypt=decrypt,
        chunks=chunks,
    ):
        yield batch


def read_splits(
    clients: SourceClients,
    splits: Sequence[Split],
    rows: RowFormat,
    *,
    publish_range: PublishRange = (None, None),
    fall_back: bool = True,
    decrypt: bool = True,
    chunks: dict[bytes, ChunkSequence] | None = None,
) -> Iterator[tuple[Split, pa.RecordBatch]]:
    """As ``read_split``, in order; the first rows of the next split are read meanwhile.

    All are of one topic. The broker's reader goes on from split to split.
    """
    settings = clients.settings
    wanted = decrypt and bool(splits)
    decryption = clients.decryption(splits[0].partition.topic) if wanted else None
    with clients.broker() as broker:
        through_broker = partial(BrokerRows, broker, rows, publish_range=publish_range)
        sources: dict[Stage, RowSource] = {
            Stage.BOOKKEEPER: EntryRows(
                partial(BookKeeperEntries.of_split, clients),
                rows,
                publish_range=publish_range,
                decryption=decryption,
                count_from_headers=settings.query.count_from_headers and fall_back,
                learn=partial(_learn, settings.query, settings.pulsar),
            ),
            Stage.STRICT_BROKER: through_broker(strict=True),
            Stage.BROKER: through_broker(),
            Stage.TABLE: MovedLedger(
                clients, rows, publish_range=publish_range, decryption=decryption
            ),
        }
        make = partial(
            SplitReader,
            sources=sources,
            ledger_now=partial(ledger_now, clients),
            fall_back=fall_back,
        )
        yield from read_in_order(splits, make, chunks)


def read_in_order(
    splits: Iterable[Split],
    make: Callable[[Split], SplitReader],
    chunks: dict[bytes, ChunkSequence] | None = None,
) -> Iterator[tuple[Split, pa.RecordBatch]]:
    """What the readers of the splits give, in the splits' order; the next one has begun already.

    An error comes in its turn and ends all. ``chunks``: see ``read_split``.
    """
    waiting = iter(splits)
    begun: deque[SplitReader] = deque()
    try:
        while True:
            begun.extend(map(make, islice(waiting, 2 - len(begun))))
            if not begun:
                return
            for batch in begun[0].rows_in_turn():
                yield begun[0].split, batch
            done = begun.popleft()
            done.close()
            if chunks is not None:
                # In the splits' order: the last word on a message is the last split's.
                chunks.update(done.chunks)
    finally:
        for one in begun:
            one.close()


class SplitReader(Closing):
    """One split being read, from when it is made: how far it is, and from which source.

    ``split``: as it was planned. ``chunks``: how far chunked messages have come, by uuid; to be
    read once all rows were taken. ``sources``: one for each stage that may be reached.
    """

    def __init__(
        self,
        split: Split,
        *,
        sources: Mapping[Stage, RowSource],
        ledger_now: ListLedger,
        fall_back: bool = True,
    ) -> None:
        self.split = split
        self.chunks: dict[bytes, ChunkSequence] = {}
        self._sources = sources
        self._ledger_now = ledger_now
        self._fall_back = fall_back
        self._reading = split  # by the metadata that is listed now
        self._first = split.first_entry
        self._stage = first_stage(split, fall_back=fall_back)
        self._turn = Event()
        self._given_up = False
        self._made = Prefetched(self._batches(), 1)

    def rows_in_turn(self) -> Iterator[pa.RecordBatch]:
        """All rows. Only now may it use an exclusive source, which those before it have used."""
        self._turn.set()
        yield from self._made

    def close(self) -> None:
        """Stop reading."""
        self._given_up = True
        self._turn.set()
        self._made.close()

    def _batches(self) -> Generator[pa.RecordBatch]:
        while self._first <= self.split.last_entry:
            given = False  # rows after the last Delivered: another source would give them again
            try:
                with closing(self._steps()) as steps:
                    for step in steps:
                        if isinstance(step, Delivered):
                            self._first = step.entry + 1
                            self.chunks.update(step.chunks)
                            given = False
                        elif step.num_rows:
                            given = True
                            yield step
                return
            except PulsarLakeError as error:
                if given or not self._goes_on_after(error):
                    raise

    def _steps(self) -> Generator[Step]:
        source = self._sources[self._stage]
        if source.exclusive:
            self._turn.wait()
            if self._given_up:
                return
        yield from source.read(self._reading, self._first)

    def _goes_on_after(self, error: PulsarLakeError) -> bool:
        failure = failure_of(error)
        if failure is None or self._stage is Stage.TABLE:
            return False
        if failure is Failure.UNSUPPORTED:
            metadata = self._reading.metadata
            now = LedgerNow.BARE if metadata is None else LedgerNow.SAME
        else:
            now, metadata = self._ledger_now(self._reading)
        following = next_stage(self._stage, failure, now, fall_back=self._fall_back)
        if following is None:
            return False
        if following is self._stage:
            self._reading = replace(self._reading, metadata=metadata)
        self._stage = following
        return True


def ledger_now(clients: SourceClients, split: Split) -> tuple[LedgerNow, LedgerMetadata | None]:
    """What Pulsar lists of the split's ledger. Raises UnavailableError when it does not answer.

    Another ledger of its id, in a cluster that was wiped or restored, is not the split's.
    """
    try:
        listing = clients.admin.ledgers(split.partition, transactions=False)
    except NotFoundError:  # the topic was deleted
        return LedgerNow.GONE, None
    found = next((one for one in listing.ledgers if one.ledger_id == split.ledger_id), None)
    if found is None or _is_another(listing.identity(found), split.identity):
        return LedgerNow.GONE, None
    if found.metadata is None:
        return LedgerNow.BARE, None
    same = found.metadata == split.metadata
    return LedgerNow.SAME if same else LedgerNow.CHANGED, found.metadata


def _is_another(now: LedgerIdentity | None, planned: LedgerIdentity | None) -> bool:
    if now is None or planned is None:
        return False
    return (now.created_at, now.closed_at) != (planned.created_at, planned.closed_at)


def _learn(query: QueryConfig, pulsar: PulsarConfig, split: Split, found: LearnedTimes) -> None:
    if split.identity is not None:
        PublishTimeStore(query, pulsar, split.partition.topic).learn(split.identity, found)
