"""Rows of an entry source: entries fetched, decoded and built as batches, each while others are.

Splits of a partition are read as one: small ledgers together cost what their bytes cost. Only
where an entry needs the rest of the partition (chunks, transactions) each split is decoded alone.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby

from reader.decode import Decryption, EntryDecoder, Messages, Seen
from reader.errors import PulsarLakeError
from reader.model import EntryBlock, Position, Split
from reader.plan import LearnedTimes
from reader.prefetch import Prefetched
from reader.sources.base import Delivered, EntrySource, RowSource, Step
from reader.sources.lookback import Lookback
from reader.sources.row_format import RowFormat
from reader.sources.rows import RowBuilder

Learn = Callable[[Sequence[tuple[Split, LearnedTimes]]], None]
"""Is told what complete reads of sealed ranges saw."""

PACK_BYTES = 1 << 20
PACK_BLOCKS = 256

_Pack = list[tuple[int, EntryBlock]]
"""Blocks that are decoded together, each with the number of its split."""


class EntryRows(RowSource):
    """Decodes what ``entries`` gives; the chunked messages of a split may begin at its lookback.

    ``entries``: the entry source for splits of one partition.
    ``together``: whether neighbouring splits are read as one; not from a source that hides
    entries: with the last ones of a split hidden, nothing would say that an error is the next's.
    """

    def __init__(
        self,
        entries: Callable[[Sequence[Split]], EntrySource],
        rows: RowFormat,
        *,
        decryption: Decryption | None = None,
        together: bool = True,
        learn: Learn | None = None,
    ) -> None:
        self._entries = entries
        self._together = together
        self._rows = rows
        self._decryption = decryption
        self._learn = learn

    def read(self, split: Split, first: int) -> Generator[Step]:
        for _, step in self.read_all([replace(split, first_entry=first)]):
            yield step

    def read_all(self, splits: Sequence[Split]) -> Generator[tuple[int, Step]]:
        begin = 0
        runs = groupby(splits, key=lambda split: split.partition)
        for run in [list(some) for _, some in runs] if self._together else [[s] for s in splits]:
            for number, step in self._read_run(run):
                yield begin + number, step
            begin += len(run)

    def _read_run(self, splits: Sequence[Split]) -> Generator[tuple[int, Step]]:
        """As ``read_all``, of one partition."""
        source = self._entries(splits)
        builder = RowBuilder(splits[0].partition, self._rows)
        decoder = builder.entry_decoder(decryption=self._decryption)
        opened_at = {
            one.ledger_id: one.opened_at * 1000 for one in splits if one.opened_at is not None
        }
        reading = _Run(source, splits, decoder, self._decryption)
        with (
            Prefetched(reading.packs(), 2) as packs,
            # Each block's messages come in a burst, and a Delivered after them: with less room
            # both sides wait for each other.
            Prefetched(reading.steps(packs), 4) as steps,
        ):
            for number, step in steps:
                if isinstance(step, Messages):
                    for batch in builder.build(step, opened_at):
                        yield number, batch
                elif isinstance(step, Delivered):
                    yield number, step
                elif self._learn is not None:
                    self._learn(step)


class _Run:
    """Splits of a partition on their way from entries to messages: a thread for each of the two."""

    def __init__(
        self,
        source: EntrySource,
        splits: Sequence[Split],
        decoder: EntryDecoder,
        decryption: Decryption | None,
    ) -> None:
        self._source = source
        self._splits = splits
        self._decoder = decoder
        self._decryption = decryption
        self._place = -1  # the split that the decoder was told of
        self._seen: dict[int, Seen] = {}  # of splits that are not complete, by number

    def packs(self) -> Generator[_Pack]:
        """All entries, in order. An error comes after all that was read before it."""
        pack: _Pack = []
        size = 0
        try:
            for number, block in self._blocks():
                own = int(block.lengths.sum())
                if pack and (size + own > PACK_BYTES or len(pack) == PACK_BLOCKS):
                    yield pack
                    pack, size = [], 0
                pack.append((number, block))
                size += own
        except PulsarLakeError:
            if pack:
                yield pack
            raise
        if pack:
            yield pack

    def _blocks(self) -> Iterator[tuple[int, EntryBlock]]:
        """Each block with its split's number; the splits' order is that of their blocks."""
        ranges = [(one.ledger_id, one.first_entry, one.last_entry) for one in self._splits]
        number = 0
        with closing(self._source.read_all(ranges)) as blocks:
            for block in blocks:
                if not len(block):
                    continue
                while not self._has(number, block):
                    number += 1
                yield number, block

    def _has(self, number: int, block: EntryBlock) -> bool:
        split = self._splits[number]
        inside = split.first_entry <= int(block.entry_ids[0]) <= split.last_entry
        return split.ledger_id == block.ledger_id and inside

    def steps(
        self, packs: Iterable[_Pack]
    ) -> Generator[tuple[int, Messages | Delivered | list[tuple[Split, LearnedTimes]]]]:
        """Messages, what was delivered, and what complete reads have seen."""
        number, reached = 0, -1
        for pack in packs:
            # The decoder raises, if at all, before it gives a block's first messages, and the
            # builder nothing: so every error comes with all rows delivered.
            together = None
            if len(pack) > 1:
                together = self._decoder.decode_together([block for _, block in pack])
            for part in [pack] if together is not None else [[one] for one in pack]:
                number, last = part[-1]
                for messages in self._decode(*part[0]) if together is None else together:
                    yield number, messages
                for (one, _), seen in zip(part, self._decoder.take_seen(), strict=True):
                    self._seen.setdefault(one, Seen()).add(seen)
                reached = int(last.entry_ids[-1])
                done = number + (reached == self._splits[number].last_entry)
                yield from self._learned(done)
                yield number, Delivered(reached, self._decoder.take_chunk_changes())
        yield from self._learned(len(self._splits))
        end = len(self._splits) - 1, self._splits[-1].last_entry
        if (number, reached) != end:
            yield end[0], Delivered(end[1])

    def _decode(self, number: int, block: EntryBlock) -> Iterator[Messages]:
        if self._place != number:
            self._place = number
            split = self._splits[number]
            start = Position(split.ledger_id, split.first_entry)
            self._decoder.begin(
                Lookback(
                    self._source,
                    split.partition,
                    end=start,
                    first=min(start, split.lookback or start),
                    decryption=self._decryption,
                )
            )
        return self._decoder.decode(block)

    def _learned(self, done: int) -> Iterator[tuple[int, list[tuple[Split, LearnedTimes]]]]:
        """What the sealed ones of the first ``done`` splits, which are complete, were seen to have.

        At most one list, and each split once.
        """
        complete = [(self._splits[one], one) for one in self._seen if one < done]
        seen = [(split, self._seen.pop(one)) for split, one in complete]
        found = [
            (split, _times(split, one))
            for split, one in seen
            if split.state == "sealed" and not one.encrypted
        ]
        if found:
            yield done, found


def _times(split: Split, seen: Seen) -> LearnedTimes:
    return LearnedTimes(
        partition=split.partition.index,
        ledger=split.ledger_id,
        first=split.first_entry,
        last=split.last_entry,
        messages=seen.messages,
        low=seen.low,
        high=seen.high,
    )
