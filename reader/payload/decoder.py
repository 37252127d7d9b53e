"""Payloads of a topic to its payload columns, whatever schema each message was written with."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reader.kernels.array_types import Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo, StoredTimes
from reader.payload.budget import ROW_BYTES, OutputBudget, value_bytes
from reader.payload.keyvalue import split
from reader.payload.member_decoder import DecoderRows, MemberDecoder, MemberDecoders
from reader.payload.remembered.lives import SchemaLives
from reader.payload.remembered.versionless import AssumedVersion, without_version

# No version, not even -1: of a row that no decoder has to read.
_NEVER = np.iinfo(np.int64).min
_ANY_NUMBER = 1 << 40
# It is repeated for each message, and schemas can have long names.
LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class DecodedPayload:
    """``count``: how many of the messages, from the first, these are.

    ``arrays``: each wanted column, ``count`` long, of exactly its field's type. ``problems``: by
    row, one line on why the columns do not reproduce its payload. Columns that could not be decoded
    are NULL. ``unread``: rows with a problem whose payload, or its key or value, could not be
    decoded at all.
    """

    count: int
    arrays: Mapping[str, pa.Array]
    problems: Mapping[int, str]
    unread: frozenset[int] = frozenset()


class PayloadDecoder:
    """Decodes messages of one topic.

    ``schemas`` are the versions of the registry, ``fields`` the payload columns of the table (as
    of `payload_fields`, perhaps of other versions: what has no column there is a problem of its
    row). ``wanted`` names the columns to build, all by default. Which rows have problems does not
    depend on it. ``assumed_version``: of messages that name no version. ``budget``: what the
    columns of one call may take. Not thread-safe.

    A schema version is parsed and compiled when its first message is decoded.
    """

    def __init__(
        self,
        schemas: Sequence[SchemaInfo],
        fields: pa.Schema,
        *,
        wanted: Collection[str] | None = None,
        assumed_version: int | None = None,
        budget: OutputBudget = OutputBudget(),  # noqa: B008 - a value
    ) -> None:
        self._budget = budget
        self._window = _ANY_NUMBER
        self._fields = [f for f in fields if wanted is None or f.name in wanted]
        self._lives = SchemaLives(schemas)
        self._assumed = without_version(self._lives, fields, assumed_version)
        self._members = MemberDecoders(self._lives, fields, [f.name for f in self._fields], budget)
        self.needs_keys = any(
            info.type == "KEY_VALUE" and info.encoding == "SEPARATED" for info in self._lives.all()
        )
        """Whether some schema version takes columns from the messages' keys."""

    def decode(
        self,
        payload: ByteSpans,
        schema_versions: Int64s,
        keys: pa.LargeBinaryArray | None = None,
        stored: StoredTimes | None = None,
    ) -> DecodedPayload:
        """Decode payloads, each by its own version (-1: it names none); none is NULL.

        As many as fit the budget, from the first on, and one at least if there is any: the caller
        goes on with the others.

        ``keys``: the messages' keys as bytes, null for none; read where `needs_keys`. ``stored``:
        when they were stored, None: nothing is known (``remembered.lives``). Nothing is
        raised for what a payload or key holds. Raises UnsupportedError where a column would exceed
        2 GiB, the limit of an Arrow string array; keep batches far below.
        """
        count = min(self._fitting(payload, keys), self._window)
        if count < len(payload):
            payload, schema_versions = payload.slice(count), schema_versions[:count]
            keys = None if keys is None else keys.slice(0, count)
        found, problems, unread = self._rows(payload, schema_versions, keys, stored)
        parts = []
        stop, room = count, self._budget.batch
        for i, some in enumerate(found):
            first = int(np.searchsorted(some.rows, stop))
            if not first:
                continue
            part = some.decode(first, room // (len(found) - i))
            room = max(room - sum(array.nbytes for array in part.arrays.values()), 0)
            if part.count < first:
                stop = int(some.rows[part.count])
            parts.append((some.rows, part))
        # What was decoded in vain is in proportion to what was not.
        self._window = 2 * stop + 16 if stop < count else max(self._window, 2 * count)
        kept = [
            _Part(rows[: np.searchsorted(rows[: p.count], stop)], p.arrays) for rows, p in parts
        ]
        for rows, part in parts:
            theirs = rows[np.fromiter(part.problems, np.int64, len(part.problems))].tolist()
            unread.update(rows[list(part.unread)].tolist())
            # Of two decoders of a row, the first says what is wrong.
            problems = {**dict(zip(theirs, part.problems.values(), strict=True)), **problems}
        arrays = {f.name: _joined(f, stop, kept) for f in self._fields}
        lines = {why: _line(why) for why in set(problems.values())}
        listed = {row: lines[problems[row]] for row in sorted(problems) if row < stop}
        return DecodedPayload(stop, arrays, listed, frozenset(unread & listed.keys()))

    def _rows(
        self,
        payload: ByteSpans,
        schema_versions: Int64s,
        keys: pa.LargeBinaryArray | None,
        stored: StoredTimes | None,
    ) -> tuple[list[DecoderRows], dict[int, str], set[int]]:
        """Return which decoder reads which rows, problems by row, and the rows that none reads."""
        problems: dict[int, str] = {}
        trailing: dict[int, str] = {}
        found: list[DecoderRows] = []
        numbers = np.full(len(payload), _NEVER)
        inline, separated = np.zeros((2, len(payload)), np.bool_)
        definitions = list(self._definitions(schema_versions, stored))
        self._members.require(number for _, number in definitions if isinstance(number, int))
        for rows, number in definitions:
            if isinstance(number, str):
                present = rows[payload.present[rows]]
                problems |= dict.fromkeys(present.tolist(), number)
                continue
            numbers[rows] = number
            version = self._members.version(number)
            if version.key is not None:
                (separated if version.separated else inline)[rows] = True

        def read(decoders: Sequence[MemberDecoder], rows: Int64s, some: ByteSpans) -> None:
            for decoder in decoders:
                found.extend(decoder.rows_of(rows, some, numbers[rows]))

        rows = np.flatnonzero(~inline)
        read(self._members.values, rows, payload.take(rows) if inline.any() else payload)
        rows = np.flatnonzero(inline)
        if len(rows):
            inline_keys, inline_values, malformed, trailing = split(payload, rows)
            problems |= malformed
            read(self._members.values, rows, inline_values)
            read(self._members.keys, rows, inline_keys)
        rows = np.flatnonzero(separated)
        if len(rows) and keys is None:
            problems |= dict.fromkeys(rows.tolist(), "the message's key was not read")
        elif len(rows):
            read(self._members.keys, rows, ByteSpans.of(keys).take(rows))
        return found, problems | trailing, set(problems)

    def _definitions(
        self, schema_versions: Int64s, stored: StoredTimes | None
    ) -> Iterator[tuple[Int64s, int | str]]:
        """The rows of each definition, by its number, and those that have none, with a reason."""
        for version in _distinct(schema_versions):
            rows = np.flatnonzero(schema_versions == version)
            if version >= 0:
                yield from self._lives.resolve(version, rows, stored)
            elif isinstance(self._assumed, AssumedVersion):
                yield from self._lives.resolve(self._assumed.version, rows, stored)
            else:
                yield rows, self._assumed

    def _fitting(self, payload: ByteSpans, keys: pa.LargeBinaryArray | None) -> int:
        """How many messages fit the budget, if each value is as long as its payload and key."""
        if not len(payload):
            return 0
        row = ROW_BYTES + sum(value_bytes(field.type) for field in self._fields)
        most = min(len(payload), max(self._budget.batch // row, 1))
        sizes = row + payload.ends[:most] - payload.starts[:most]
        if keys is not None:
            some = ByteSpans.of(keys.slice(0, most))
            sizes += some.ends - some.starts
        fitting = int(np.searchsorted(np.cumsum(sizes), self._budget.batch, side="right"))
        return max(fitting, 1)


@dataclass(frozen=True, slots=True)
class _Part:
    """Arrays of ``rows``, and perhaps of some after them."""

    rows: Int64s
    arrays: Mapping[str, pa.Array]


def _distinct(numbers: Int64s) -> list[int]:
    if len(numbers) and (numbers == numbers[0]).all():  # as in most batches
        return [int(numbers[0])]
    found: list[int] = np.unique(numbers).tolist()
    return found


def _line(reason: str) -> str:
    """``reason`` as one line of text, not too long; names in it may hold anything."""
    if len(reason) > LONGEST_REASON:
        reason = reason[:LONGEST_REASON] + "..."
    return reason if reason.isprintable() else ascii(reason)[1:-1]


def _joined(field: pa.Field, count: int, parts: Sequence[_Part]) -> pa.Array:
    """Column ``field`` of all rows, from the parts that have it."""
    having = [
        (part.rows, part.arrays[field.name].slice(0, len(part.rows)))
        for part in parts
        if field.name in part.arrays
    ]
    if len(having) == 1 and len(having[0][0]) == count:
        return having[0][1]
    where = np.full(count, -1, np.int64)
    start = 0
    for rows, _ in having:
        where[rows] = np.arange(start, start + len(rows))
        start += len(rows)
    if not start:
        return pa.nulls(count, field.type)
    values = pa.concat_arrays([array for _, array in having])
    return values.take(pa.array(where, mask=where < 0))
