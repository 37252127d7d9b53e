"""Requests to bookies, and what arrives from them: values, no I/O.

``LedgerReads`` returns actions, and takes arrivals and failures. ``BookKeeperClient`` performs the
actions on sockets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from reader.bookkeeper.v2 import BatchReadHeader
from reader.errors import PulsarLakeError
from reader.kernels.array_types import Bytes, Int64s
from reader.model import EntryBlock


class ReadKind(Enum):
    """The kind of a read. Each has its own protocol, so a bookie has a connection for each."""

    ENTRY = "entry"
    RANGE = "range"


@dataclass(frozen=True, slots=True)
class EntryRead:
    """Requests for single entries of one ledger: a column of ``requests`` numbers them."""

    ledger_id: int
    entries: Int64s
    requests: Int64s


@dataclass(frozen=True, slots=True)
class RangeRead:
    """A request for the entries of a ledger from ``first`` on."""

    request: int
    ledger_id: int
    first: int
    max_entries: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send reads of one kind to a bookie in one write, over a new connection if it has none."""

    bookie: str
    kind: ReadKind
    reads: Sequence[EntryRead] | Sequence[RangeRead]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close all connections to a bookie."""

    bookie: str


@dataclass(frozen=True, slots=True)
class Deliver:
    """Deliver the next block to the caller."""

    block: EntryBlock


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until data arrives on one of the connections, for ``seconds`` at most."""

    connections: Sequence[tuple[str, ReadKind]]
    seconds: float


Action = Send | Disconnect | Deliver | Wait


@dataclass(frozen=True, slots=True)
class EntryAnswers:
    """Answers to entry reads.

    ``table`` has a column for each, as ``v3.split_answers`` returns them. The bodies are in
    ``buffer``, which stays valid until the connection receives more.
    """

    table: Int64s
    buffer: Bytes


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """The answer to a range read. ``content``: the entries, each behind its size."""

    header: BatchReadHeader
    content: Bytes


@dataclass(frozen=True, slots=True)
class Arrival:
    """Bytes from a bookie, and the answers that they complete."""

    bookie: str
    kind: ReadKind
    byte_count: int
    answers: EntryAnswers | Sequence[RangeAnswer]


@dataclass(frozen=True, slots=True)
class BookieFailure:
    """A bookie failed. All connections to it are closed.

    ``is_silent``: it did not respond in time. ``was_kept``: one of its connections was kept from an
    earlier run and has given no answer since. ``rejects_ranges``: it closed a connection for range
    reads in good order, without any answer.
    """

    bookie: str
    error: PulsarLakeError
    is_silent: bool = False
    was_kept: bool = False
    rejects_ranges: bool = False
