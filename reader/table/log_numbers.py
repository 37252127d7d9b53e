"""The numbers that the log keeps of a topic and of each partition: ``txn`` actions.

A commit sets ``txn(appId, version)``, and a version of the table has the last ``version`` of each
``appId`` ("Transaction Identifiers" of the Delta protocol). The log never forgets a number.

1. The ``appId`` of a field is the full name of its partition or topic, ``#`` and the field's name
   here, with ``-`` for ``_``. A partition's watermark has the full name alone.
2. A position is two numbers: ``-ledger`` and ``-entry`` follow the field's name.
3. A field without a value is negative, or not in the log.

A field is read when it is asked for: delta-rs reads commits and the checkpoint for each number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

from reader.model import BEFORE_ALL, Partition, Position, Topic

Value = TypeVar("Value")


class LogField(Generic[Value]):
    """One field of the log's numbers: how its value is read, and which actions set it.

    absent: the value that is read if the log has none.
    kind: ``int``, or ``Position`` for two numbers.
    """

    def __init__(self, absent: Value, kind: type = int) -> None:
        self._absent = absent
        self._kind = kind
        self._ids: tuple[str, ...] = ()

    def __set_name__(self, owner: type, name: str) -> None:
        plain = "" if name == "watermark" else "#" + name.replace("_", "-")
        ends = ("-ledger", "-entry") if self._kind is Position else ("",)
        self._ids = tuple(plain + end for end in ends)

    @overload
    def __get__(self, numbers: None, owner: type) -> LogField[Value]: ...
    @overload
    def __get__(self, numbers: _Numbers, owner: type) -> Value: ...
    def __get__(self, numbers: _Numbers | None, owner: type) -> LogField[Value] | Value:
        if numbers is None:
            return self
        found = [numbers.read(numbers.full_name + one) for one in self._ids]
        if found[0] is None or found[0] < 0 or None in found:
            return self._absent
        value: Value = self._kind(*found)
        return value

    def set(self, of: Topic | Partition, value: Value) -> dict[str, int]:
        """Return the ``txn`` actions, version by ``appId``, that give the field a value.

        None is written as a field without a value.
        """
        numbers: list[int]
        if isinstance(value, Position):
            numbers = [value.ledger, value.entry]
        else:
            numbers = [value] if isinstance(value, int) else [-1] * len(self._ids)
        return dict(zip((of.full_name + one for one in self._ids), numbers, strict=True))


@dataclass(frozen=True, slots=True)
class _Numbers:
    full_name: str
    read: Callable[[str], int | None]


@dataclass(frozen=True, slots=True)
class TopicNumbers(_Numbers):
    """The numbers of a topic. ``read`` returns the version of an ``appId``, or None."""

    ciphertext = LogField[int | None](None)
    """A ledger of the last commit that added rows of encrypted entries; None: no row is one."""

    data_loss = LogField[int | None](None)
    """The ledger that follows the topic's last loss, or was declared lost; None: no loss."""

    expired_before = LogField[int | None](None)
    """Rows published before this have expired, except for a while (ms since the epoch).

    Each commit that drops rows has a greater one.
    """


@dataclass(frozen=True, slots=True)
class PartitionNumbers(_Numbers):
    """The numbers of a partition. ``read`` returns the version of an ``appId``, or None."""

    watermark = LogField[int](-1)
    """The last ledger id that is wholly in the table; -1: there is none."""

    entries = LogField[int | None](None)
    """The number of entries of the watermark's ledger."""

    first = LogField[int | None](None)
    """The first ledger that the table has of the managed ledger of ``TopicTable.created_at``.

    Ledgers that Pulsar had deleted before are in no table. None: the table has no ledger of it.
    """

    missing = LogField[int](0)
    """The minimum number of entries that had been deleted before ``first`` was added.

    Only entries written since the broker had loaded the topic count.
    """

    earlier = LogField[int](-1)
    """The last ledger that the table has of managed ledgers before that of ``created_at``.

    -1: the partition was never deleted and made again. A stream at such a ledger has read nothing
    of the new managed ledger.
    """

    lookback = LogField[Position | None](None, Position)
    """Where the first chunked message begins that the watermark leaves incomplete.

    Messages that begin before it and are incomplete were given up.
    """

    given_up = LogField[Position | None](None, Position)
    """Where the last chunked message begins that was given up.

    Messages are given up in the order of their beginnings, so all rows of such messages up to
    there are in the table.
    """

    expected = LogField[int | None](None)
    """The first ledger above the watermark that had entries at its commit."""

    open_ledger = LogField[int | None](None)
    """The open ledger at the watermark's commit, if no ledger above it had entries then."""

    added = LogField[int | None](None)
    """``PartitionLedgers.added`` when the ledgers were listed for the watermark's commit."""

    closed_at = LogField[int | None](None)
    """The greatest close time of the ledgers up to ``closed_ledger`` (ms, by the brokers' clocks).

    Their clocks differ, so it need not be the close time of the last ledger.
    """

    closed_ledger = LogField[int](-1)
    """The last ledger that ``closed_at`` covers; -1: none.

    It is the watermark, or the last ledger before one whose close time was not known.
    """

    compaction_start = LogField[int | None](None)
    """A ledger from which on Pulsar's compaction sees all messages of the managed ledger.

    None: Pulsar does not compact the partition.
    """

    data_loss = LogField[int | None](None)
    """The ledger that follows the partition's last loss, or was declared lost; None: no loss."""

    expired_from = LogField[int | None](None)
    """The lowest ledger id of which rows may have expired; None: no row has."""

    expired_upto = LogField[Position](BEFORE_ALL, Position)
    """The last position of which a row may have expired; -1:-1: no row has.

    Rows of lower ledgers may have as well: publish times are producers' clocks.
    """

    expired_given_up = LogField[Position](BEFORE_ALL, Position)
    """Where the last given-up message begins whose row may have expired; -1:-1: no row has."""

    expired_before = LogField[int](0)
    """``TopicNumbers.expired_before`` of the last commit in which a row of the partition expired.

    0: no row has.
    """
