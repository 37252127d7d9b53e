"""Rows to entries: each row to its topic and partition, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reader import encode
from reader.clients import Clients
from reader.errors import ConfigurationError, NotFoundError
from reader.kernels.array_types import Bools, Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.model import Partition, Topic
from reader.model.column_names import same_name
from reader.model.columns import metadata_index
from reader.sink.sink_options import SinkOptions
from reader.sink.target import Target, payload_columns, resolve_target

_MOST_TOPICS = 10_000


class EntrySink(Protocol):
    """What takes entries, in the order of each partition."""

    def put(self, target: Target, partition: Partition, entry: encode.EncodedEntry) -> None: ...


class RowWriter:
    """Writes the rows of one task; for one thread.

    ``target``: where rows go; None: where their ``__topic`` says. ``turn``: the partition at which
    rows without a key begin. Raises ConfigurationError for a row that cannot be written, which says
    what is wrong with which column: nothing of the write is sent then, unless it is sent at once.
    """

    def __init__(
        self,
        clients: Clients,
        options: SinkOptions,
        target: Target | None,
        sink: EntrySink,
        encryption: encode.Encryption | None,
        turn: int,
    ) -> None:
        self._clients = clients
        self._options = options
        self._target = target
        self._sink = sink
        self._encryption = encryption
        self._turn = turn
        self._topics: dict[Topic, _TopicWriter] = {}
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, whose schema is the same each time."""
        self.rows += batch.num_rows
        if not batch.num_rows:
            return
        if self._target is not None:
            self._writer(self._target.topic).write(batch, np.arange(batch.num_rows))
            return
        require_topic_column(batch.schema)
        column = batch.column(metadata_index(batch.schema, "__topic"))
        names = pc.dictionary_encode(column.cast(pa.string()))
        if names.null_count:
            raise ConfigurationError("a row has no topic: its __topic is NULL")
        for number, name in enumerate(_texts(names.dictionary)):
            rows = np.flatnonzero(names.indices.to_numpy(zero_copy_only=False) == number)
            self._writer(Topic.parse(name)).write(batch.take(pa.array(rows)), rows)

    def finish(self) -> None:
        """Complete the last batches."""
        for one in self._topics.values():
            one.finish()

    def _writer(self, topic: Topic) -> _TopicWriter:
        found = self._topics.get(topic)
        if found is None:
            if len(self._topics) >= _MOST_TOPICS:
                raise ConfigurationError(
                    f"the rows of one task go to more than {_MOST_TOPICS} topics",
                    hint="is __topic what it should be?",
                )
            target = self._target or _named_target(self._clients, topic)
            form = self._options.entry_format(target.entry_bytes, target.schema_version)
            found = _TopicWriter(
                target,
                self._options,
                self._sink,
                lambda: encode.BatchEncoder(form, self._encryption),
                self._turn,
            )
            self._topics[topic] = found
        return found


def _named_target(clients: Clients, topic: Topic) -> Target:
    try:
        return resolve_target(clients, topic)
    except NotFoundError as error:
        error.hint = "a row's __topic names it: make it, or leave out such rows"
        raise


def require_topic_column(rows: pa.Schema) -> None:
    """Raises ConfigurationError where rows do not say which topic they go to."""
    if metadata_index(rows, "__topic") < 0:
        raise ConfigurationError(
            "rows have no topic to go to",
            hint='.option("topic", "tenant/namespace/topic"), or a column __topic',
        )


class _TopicWriter:
    def __init__(
        self,
        target: Target,
        options: SinkOptions,
        sink: EntrySink,
        encoder: Callable[[], encode.BatchEncoder],
        turn: int,
    ) -> None:
        self._target = target
        self._options = options
        self._sink = sink
        self._make = encoder
        self._turn = turn
        self._payloads: encode.PayloadEncoder | None = None
        self._columns: pa.Schema | None = None
        self._removed: list[str] = []
        self._defaults: dict[str, bool | int | float | str] = {}
        self._encoders: dict[int, encode.BatchEncoder] = {}

    def write(self, batch: pa.RecordBatch, numbers: Int64s) -> None:
        """``numbers``: what errors call the rows."""
        if self._payloads is None:
            self._payloads = self._target.encoder(batch.schema)
            self._columns, self._removed = self._target.split(payload_columns(batch.schema))
            self._defaults = self._target.defaults()
        with _numbered(numbers):
            self._require_no_removed(batch)
            columns = encode.message_columns(batch)
        values, keys, null = self._encoded(batch, columns, numbers)
        columns = replace(columns, tombstones=null)
        if keys is not None:
            texts = encode.base64_text(keys)
            with _numbered(numbers):
                _require_keys(batch, self._payloads.key_column, columns.keys, texts)
            columns = replace(columns, keys=texts, base64=texts.present)
        for index, rows in self._routed(columns):
            encoder = self._encoders.get(index)
            if encoder is None:
                encoder = self._encoders[index] = self._make()
            partition = self._target.partition(index)
            with _numbered(numbers):
                for entry in encoder.add(rows, values, columns):
                    self._sink.put(self._target, partition, entry)

    def _require_no_removed(self, batch: pa.RecordBatch) -> None:
        """Raise ConfigurationError if a row has a value that the newest schema has no field for."""
        for name in self._removed:
            _require_none(
                batch.column(name).is_valid().to_numpy(zero_copy_only=False),
                f"a row has a value in column {name}, and the newest schema of topic "
                f"{self._target.topic} has no such field",
                hint="leave the column out, or give the topic a schema that has the field",
            )

    def finish(self) -> None:
        for index, encoder in self._encoders.items():
            for entry in encoder.finish():
                self._sink.put(self._target, self._target.partition(index), entry)

    def _encoded(
        self, batch: pa.RecordBatch, columns: encode.MessageColumns, numbers: Int64s
    ) -> tuple[ByteSpans, ByteSpans | None, Bools]:
        """Payloads of all rows, keys that are out of the payload, and which rows are null values.

        A tombstone is one, unless it has values: these may well be a payload without a byte, which
        is a tombstone for Pulsar's compaction, too.
        """
        assert self._payloads is not None and self._columns is not None
        payload = batch.select(self._columns.names)
        dead, key = columns.tombstones, self._payloads.key_column
        null = dead.copy()
        for name in self._columns.names if dead.any() else ():
            if key is None or not same_name(name, key):
                given = payload.column(name).is_valid()
                if (
                    name in self._defaults
                ):  # Spark fills it in where a statement leaves the column out
                    differs = pc.not_equal(payload.column(name), self._defaults[name])
                    given = pc.fill_null(differs, False)
                null &= ~given.to_numpy(zero_copy_only=False)
        living = np.flatnonzero(~null)
        if key is not None or not null.any():
            encoded = self._payloads.encode(payload, numbers)
            values = encoded.values
        else:
            encoded = self._payloads.encode(payload.take(pa.array(living)), numbers[living])
            values = _scattered(encoded.values, living, len(dead))
        with _numbered(numbers):
            _require_none(
                dead & ~null & (values.ends > values.starts),
                "a row has a value, and its __tombstone is true",
                hint="the payload columns of a null value are NULL",
            )
            _require_none(
                ~values.present & ~null,
                "a row has no payload: all of it is NULL",
                hint="for a null value its __tombstone is true",
            )
        return values, encoded.keys, null

    def _routed(self, columns: encode.MessageColumns) -> list[tuple[int, Int64s]]:
        """(partition, its rows in order): by key; rows without one in turn, a batch at a time."""
        count, rows = self._target.partitions, len(columns.tombstones)
        if count <= 1:
            return [(0, np.arange(rows))]
        found = encode.key_partitions(columns.keys, count, self._options.hashing)
        keyless = np.flatnonzero(found < 0)
        if len(keyless):
            turns = np.arange(len(keyless)) // self._options.batch_messages
            found[keyless] = (self._turn + turns) % count
            self._turn = (self._turn + int(turns[-1]) + 1) % count
        order = np.argsort(found, kind="stable")
        bounds = np.flatnonzero(np.diff(found[order])) + 1
        return [(int(found[some[0]]), some) for some in np.split(order, bounds)]


@contextmanager
def _numbered(numbers: Int64s) -> Iterator[None]:
    """Errors within are of these rows."""
    try:
        yield
    except ConfigurationError as error:
        row = error.context.get("row")
        if isinstance(row, int):
            error.context = {**error.context, "row": int(numbers[row])}
        raise


def _require_none(bad: Bools, why: str, hint: str) -> None:
    if bad.any():
        raise ConfigurationError(why, hint=hint, context={"row": int(np.flatnonzero(bad)[0])})


def _require_keys(
    batch: pa.RecordBatch, key: str | None, given: ByteSpans, written: ByteSpans
) -> None:
    """Raises ConfigurationError where a message's key, column ``key``, has not its __key.

    What was read has both. Where both are given the column is what is written.
    """
    lost = given.present.copy()
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if key is not None and same_name(name, key):
            lost &= ~column.is_valid().to_numpy(zero_copy_only=False)
    # NULL may be a key, too: of a schema that is a union.
    for row in map(int, np.flatnonzero(lost)):
        if given[row] != written[row]:
            raise ConfigurationError(
                "a row has a __key, and its message gets the column key, which is NULL",
                hint="the topic is a SEPARATED KeyValue: give the column key its value",
                context={"row": row, "column": "__key"},
            )


def _texts(strings: pa.StringArray) -> list[str]:
    try:
        found: list[str] = strings.to_pylist()
    except UnicodeDecodeError as error:
        raise ConfigurationError("a row has no topic: its __topic is not UTF-8") from error
    return found


def _scattered(values: ByteSpans, rows: Int64s, count: int) -> ByteSpans:
    """``values`` at ``rows`` of ``count``; the others are not present."""
    starts, ends = np.zeros(count, np.int64), np.zeros(count, np.int64)
    present = np.zeros(count, np.bool_)
    starts[rows], ends[rows], present[rows] = values.starts, values.ends, values.present
    return ByteSpans(values.data, starts, ends, present)
