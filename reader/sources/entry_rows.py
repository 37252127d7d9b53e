"""Rows of an entry source: entries fetched, decoded and built as batches, each while others are."""

from __future__ import annotations

from collections.abc import Callable, Generator

from reader.decode import HEADER_COLUMNS, Decryption, EntryDecoder, Messages
from reader.model import Position, Split
from reader.plan import LearnedTimes
from reader.prefetch import Prefetched
from reader.sources.base import Delivered, EntrySource, PublishRange, RowSource, Step
from reader.sources.lookback import Lookback
from reader.sources.rows import RowBuilder, RowFormat

__all__ = ["EntryRows", "Learn"]

Learn = Callable[[Split, LearnedTimes], None]
"""Is told what a complete read of a sealed range saw."""


class EntryRows(RowSource):
    """Decodes what ``entries`` gives; the chunked messages of a split may begin at its lookback.

    ``entries``: the entry source for a split. ``count_from_headers``: whether a batch's header is
    believed about how many messages it holds, where no more is asked for.
    """

    def __init__(
        self,
        entries: Callable[[Split], EntrySource],
        rows: RowFormat,
        *,
        publish_range: PublishRange = (None, None),
        decryption: Decryption | None = None,
        count_from_headers: bool = False,
        learn: Learn | None = None,
    ) -> None:
        self._entries = entries
        self._rows = rows
        self._range = publish_range
        self._decryption = decryption
        self._learn = learn
        suffices = not rows.needs_payload and set(rows.metadata_columns) <= set(HEADER_COLUMNS)
        self._headers_only = count_from_headers and suffices

    def read(self, split: Split, first: int) -> Generator[Step]:
        entries = self._entries(split)
        start = Position(split.ledger_id, first)
        lookback = Lookback(
            entries,
            split.partition,
            end=start,
            first=min(start, split.lookback or start),
            decryption=self._decryption,
        )
        builder = RowBuilder(split.partition, self._rows)
        decoder = builder.entry_decoder(
            lookback,
            decryption=self._decryption,
            publish_range=self._range,
            headers_only=self._headers_only,
        )

        def decoded() -> Generator[Messages | Delivered]:
            for block in blocks:
                # The decoder raises, if at all, before it gives a block's first messages, and
                # the builder nothing: so every error comes with all rows delivered.
                yield from decoder.decode(block)
                yield Delivered(int(block.entry_ids[-1]), decoder.take_chunk_changes())

        with (
            Prefetched(entries.read(split.ledger_id, first, split.last_entry), 2) as blocks,
            Prefetched(decoded(), 2) as steps,
        ):
            for step in steps:
                if isinstance(step, Delivered):
                    yield step
                else:
                    yield from builder.build(step)
        whole = split.state == "sealed" and first == split.first_entry
        if self._learn is not None and whole and not decoder.encrypted_seen:
            self._learn(split, _seen(split, decoder))


def _seen(split: Split, decoder: EntryDecoder) -> LearnedTimes:
    low, high = decoder.publish_times_seen
    return LearnedTimes(
        partition=split.partition.index,
        ledger=split.ledger_id,
        first=split.first_entry,
        last=split.last_entry,
        messages=decoder.messages_seen,
        low=low,
        high=high,
    )
