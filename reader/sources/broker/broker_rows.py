"""Rows through the broker: where bookies are out of reach, and for what only brokers can read."""

from __future__ import annotations

from collections.abc import Generator

from reader.model import Position, Split
from reader.sources.base import Delivered, PublishRange, RowSource, Step
from reader.sources.broker.broker_reader import BrokerReader
from reader.sources.rows import RowBuilder, RowFormat

__all__ = ["BrokerRows"]


class BrokerRows(RowSource):
    """The messages that ``pulsar-client`` gives. One reader goes on from split to split.

    ``strict``: every entry has to give a message; where one does not, UnsupportedError is raised
    after the rows before it, for a source that can tell what it is.
    """

    def __init__(
        self,
        reader: BrokerReader,
        rows: RowFormat,
        *,
        publish_range: PublishRange = (None, None),
        strict: bool = False,
    ) -> None:
        self._reader = reader
        self._rows = rows
        self._range = publish_range
        self._strict = strict

    def read(self, split: Split, first: int) -> Generator[Step]:
        if first > split.last_entry:
            return
        builder = RowBuilder(split.partition, self._rows)
        start = Position(split.ledger_id, first)
        # Planned for the broker, it has to see all of a chunked message; where it only helps out,
        # the bookies serve most splits, and each would begin at the same position again.
        planned = split.tier.in_order and not self._strict
        for last, messages in self._reader.read(
            split.partition,
            start,
            Position(split.ledger_id, split.last_entry),
            start=min(start, split.lookback or start) if planned else start,
            columns=self._rows.metadata_columns,
            keys=builder.needs_keys,
            publish_range=self._range,
            strict=self._strict,
            rescue=self._rows.needs_payload,
        ):
            yield from builder.build(messages)
            if last is not None:
                yield Delivered(last)
        yield Delivered(split.last_entry)
