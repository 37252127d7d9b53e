"""Splits read one after the other, each from whichever source can give it, as ``fallback`` says."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import NoReturn

import pyarrow as pa

from reader.config import PulsarConfig, QueryConfig
from reader.decode import ChunkMemory
from reader.errors import NotFoundError, PulsarLakeError
from reader.model import LedgerIdentity, Split, Stored
from reader.plan import LearnedTimes, PublishTimeStore, SplitsRead
from reader.sources.base import Delivered, RowSource, Step
from reader.sources.broker import BrokerEntries, HeldBroker
from reader.sources.entry_rows import EntryRows
from reader.sources.fallback import Failure, LedgerNow, Stage, failure_of, first_stage, next_stage
from reader.sources.moved_ledger import MovedLedger
from reader.sources.row_format import RowFormat
from reader.sources.source_clients import SourceClients
from reader.sources.stored import StoredEntries

ListLedger = Callable[[Split], tuple[LedgerNow, Stored | None]]
"""What Pulsar says now of a split's ledger, and by what it is read."""


def read_splits(
    clients: SourceClients, read: SplitsRead, rows: RowFormat, *, chunks: ChunkMemory | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of splits of one topic, in order, as batches of exactly ``rows.columns``.

    chunks: collects how much of each chunked message was read, by uuid.
    Raises the error of the last source (``RowSource.read``), which names the sources before it.
    """
    settings, splits = clients.settings, read.splits
    wanted = read.decrypt and bool(splits)
    decryption = clients.decryption(splits[0].partition.topic) if wanted else None
    entry_rows = partial(EntryRows, rows=rows, decryption=decryption)
    with HeldBroker(clients) as broker:
        through_broker = entry_rows(
            partial(BrokerEntries.of_splits, clients, broker.lend), together=False
        )
        table = MovedLedger(clients, rows, decryption=decryption)
        sources: dict[Stage, RowSource] = {
            Stage.STORED: entry_rows(
                partial(StoredEntries.of_splits, clients),
                # What is learned of a ledger that is being offloaded would not be used again.
                learn=partial(_learn, settings.query, settings.pulsar) if read.fall_back else None,
            ),
            Stage.TAIL: through_broker,
            Stage.BROKER: through_broker,
            Stage.LISTED_TABLE: table,
            Stage.TABLE: table,
        }
        reader = SplitReader(
            splits,
            sources=sources,
            ledger_now=partial(ledger_now, clients),
            fall_back=read.fall_back,
            chunks=chunks,
        )
        yield from reader.batches()


@dataclass(slots=True)
class _Part:
    """The remaining part of a split, by what Pulsar lists now.

    ``reasons``: errors of the sources before. ``is_gone``: Pulsar did not list its ledger.
    """

    split: Split
    stage: Stage
    reasons: list[PulsarLakeError] = field(default_factory=list)
    is_gone: bool = False

    def delivered(self, entry: int) -> None:
        """All rows up to ``entry`` were given."""
        if entry >= self.split.first_entry:
            self.split = replace(self.split, first_entry=entry + 1, whole=False)

    def finish(self) -> None:
        """All its rows were given."""
        self.delivered(self.split.last_entry)

    def fail(self, error: PulsarLakeError) -> NoReturn:
        """Raise the error of the last source, which names as well why that source was asked.

        Where it has no hint, it gets that of the first source, which is nearest to the cause.
        """
        before = [one for one in self.reasons if one.message != error.message]
        if not before:
            raise error
        gone = "; Pulsar does not list the ledger any more" if self.is_gone else ""
        raise type(error)(
            "; asked because of: ".join(one.message for one in (error, *reversed(before))) + gone,
            hint=error.hint or next((one.hint for one in before if one.hint), None),
            context=error.context,
        ) from error

    def leave(self, error: PulsarLakeError) -> None:
        """Keep the reason for another source: the first one, and of later others the last two."""
        first, later = self.reasons[:1], self.reasons[1:]
        if first and first[0].message == error.message:
            first[0].hint = first[0].hint or error.hint
            return
        # Without its traceback, which holds what the failed source had read.
        reason = PulsarLakeError(error.message, hint=error.hint)
        later = [one for one in later if one.message != reason.message][-1:]
        self.reasons = [*first, *later, reason]

    @property
    def is_done(self) -> bool:
        return self.split.first_entry > self.split.last_entry


class SplitReader:
    """Splits read one after the other: what is left of them, and from which source.

    Neighbours that are read from the same source are read as one. ``sources``: one for each stage
    that may be reached. ``chunks``: see ``read_splits``.
    """

    def __init__(
        self,
        splits: Iterable[Split],
        *,
        sources: Mapping[Stage, RowSource],
        ledger_now: ListLedger,
        fall_back: bool = True,
        chunks: ChunkMemory | None = None,
    ) -> None:
        self._sources = sources
        self._ledger_now = ledger_now
        self._fall_back = fall_back
        self._chunks = chunks
        self._left = deque(_Part(one, first_stage(one, fall_back=fall_back)) for one in splits)

    def batches(self) -> Generator[pa.RecordBatch]:
        """All rows, in order. An error comes in its turn and ends all."""
        while (first := self._first()) is not None:
            given = False  # rows after the last Delivered: another source would give them again
            try:
                with closing(self._run(first.stage)) as steps:
                    for step in steps:
                        if isinstance(step, Delivered):
                            # In the splits' order: the last word on a message is the last split's.
                            if self._chunks is not None:
                                for uuid, sequence in step.chunks.items():
                                    self._chunks.put(uuid, sequence)
                            given = False
                        elif step.num_rows:
                            given = True
                            yield step
            except PulsarLakeError as error:
                failed = self._first()
                if given or not self._goes_on_after(error):
                    if failed is None:
                        raise
                    failed.fail(error)
                if failed is not None:
                    failed.leave(error)

    def _first(self) -> _Part | None:
        """The first part of which anything is left; what is done before it is taken off."""
        while self._left and self._left[0].is_done:
            self._left.popleft()
        return self._left[0] if self._left else None

    def _run(self, stage: Stage) -> Generator[Step]:
        """Read the first part, and those after it of the same stage."""
        run = list(takewhile(lambda part: part.stage is stage, self._left))
        done = 0
        with closing(self._sources[stage].read_all([part.split for part in run])) as steps:
            for number, step in steps:
                if isinstance(step, Delivered):
                    for part in run[done:number]:
                        part.finish()
                    done = number
                    run[number].delivered(step.entry)
                yield step
        for part in run[done:]:
            part.finish()

    def _goes_on_after(self, error: PulsarLakeError) -> bool:
        failure, part = failure_of(error), self._first()
        if failure is None or part is None or part.stage is Stage.TABLE:
            return False
        if failure is Failure.UNSUPPORTED:
            metadata = part.split.metadata
            now = LedgerNow.BARE if metadata is None else LedgerNow.SAME
        else:
            try:
                now, metadata = self._ledger_now(part.split)
            except PulsarLakeError as unlisted:
                part.leave(error)
                part.fail(unlisted)
            part.is_gone = now is LedgerNow.GONE
        following = next_stage(part.stage, failure, now, fall_back=self._fall_back)
        if following is None:
            return False
        if following is part.stage:
            # Of all that is left of the ledger: parts that are read as one are read by the same.
            ledger = part.split.partition, part.split.ledger_id
            for one in self._left:
                if (one.split.partition, one.split.ledger_id) == ledger:
                    one.split = replace(one.split, metadata=metadata)
        part.stage = following
        return True


def ledger_now(clients: SourceClients, split: Split) -> tuple[LedgerNow, Stored | None]:
    """Return what Pulsar lists of the split's ledger.

    Another ledger of its id, in a cluster that was wiped or restored, counts as gone.
    Raises UnavailableError if Pulsar does not answer.
    """
    try:
        listing = clients.admin.ledgers(split.partition, transactions=False)
    except NotFoundError:  # the topic was deleted
        return LedgerNow.GONE, None
    found = next((one for one in listing.ledgers if one.ledger_id == split.ledger_id), None)
    if found is None or _is_another(listing.identity(found), split.identity):
        return LedgerNow.GONE, None
    if found.stored is None:
        return LedgerNow.BARE, None
    same = found.stored == split.metadata
    return LedgerNow.SAME if same else LedgerNow.CHANGED, found.stored


def _is_another(now: LedgerIdentity | None, planned: LedgerIdentity | None) -> bool:
    if now is None or planned is None:
        return False
    return (now.created_at, now.closed_at) != (planned.created_at, planned.closed_at)


def _learn(
    query: QueryConfig, pulsar: PulsarConfig, found: Sequence[tuple[Split, LearnedTimes]]
) -> None:
    known = [(split.identity, one) for split, one in found if split.identity is not None]
    if known:
        PublishTimeStore(query, pulsar, found[0][0].partition.topic).learn(known)
