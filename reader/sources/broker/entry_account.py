"""Which entries need no row, though the broker's client gave no message of them.

The broker itself is asked what such an entry is. Chunks are followed by their headers, in the order
of the log, and mean what they mean to the entry decoder (``reader.decode.chunks``): one that is not
the last, or was sent again, is no row.

Of a chunk of a compressed message Pulsar 4.2 says nothing (its handler fails and never answers).
So an entry is asked about once a later message came, and one of which nothing is said needs no row
if it lies within a chunked message that came.
"""

from __future__ import annotations

from collections.abc import Iterable

from reader.decode import NO_CHUNKS, Chunk, ChunkSequence, add_chunk, is_incomplete
from reader.errors import NotFoundError, UnavailableError
from reader.model import Partition
from reader.pulsar import AdminClient, EntryInfo

__all__ = ["EntryAccount"]

_At = tuple[int, int]
"""Ledger and entry."""
_NEVER: _At = (-1, -1)
_KEPT = 10_000
"""Chunked messages that came, of which a chunk may be sent again: a producer does so with what has
no receipt yet, 1,000 messages at most unless told otherwise."""


class EntryAccount:
    """Of one partition, read in the order of the log.

    All methods raise NotFoundError where the ledger was trimmed.
    """

    def __init__(self, admin: AdminClient, partition: Partition) -> None:
        self._admin = admin
        self._partition = partition
        self._sequences: dict[str, ChunkSequence] = {}
        self._begun: dict[_At, str] = {}  # of incomplete sequences, by their first chunk
        self._came: dict[str, tuple[_At, int]] = {}  # where, and of how many chunks; by uuid
        self._without_row: dict[_At, bool] = {}
        self._skipped: list[_At] = []
        self._unanswered: set[_At] = set()  # of these nothing is said
        self._compressing: set[str] = set()  # producers of chunks of which nothing is said

    def begin(self) -> None:
        """Of another range of entries."""
        self._without_row.clear()
        self._skipped.clear()
        self._unanswered.clear()

    def skip(self, ledger: int, entries: Iterable[int]) -> None:
        """No message came of these entries, and one of a later entry did."""
        self._skipped += ((ledger, entry) for entry in entries)

    def message_came(self, at: _At, begin: _At, producer: str) -> None:
        """A chunked message, with its last chunk's entry and its first one's.

        Raises UnavailableError where an entry before it should have given a message.
        """
        if self._skipped:
            self._settle(begin, at, producer)
        uuid = self._begun.pop(begin, None)
        if uuid is not None:
            self._came.pop(uuid, None)
            self._came[uuid] = at, self._sequences.pop(uuid)[0].num_chunks
            if len(self._came) > _KEPT:
                del self._came[next(iter(self._came))]

    @property
    def follows_chunks(self) -> bool:
        """Whether it makes a difference that a chunked message comes."""
        return bool(self._skipped or self._begun)

    @property
    def skipped(self) -> str:
        """The first entry that no message came of, and that needs one for all we know."""
        return self._name(self._skipped[0])

    def is_settled(self, *, again: bool = False) -> bool:
        """Whether no entry that was skipped needs a row; False: of some nothing is said.

        ``again``: ask once more. Raises UnavailableError where one should have given a message.
        """
        if again:
            self._unanswered.clear()
        if self._skipped and self._skipped[0] not in self._unanswered:
            self._settle(_NEVER, _NEVER, "")
        return not self._skipped

    def is_last_message(self, ledger: int, entry: int, batch_index: int) -> bool:
        """Whether no other message of the entry is to come."""
        info = self._info((ledger, entry))
        return info is not None and info.messages <= batch_index + 1

    def needs_no_row(self, ledger: int, entry: int) -> bool | None:
        """Of an entry without a message; those before it were asked for already.

        None where nothing is said of it.
        """
        at = ledger, entry
        if at not in self._without_row:
            info = self._info(at)
            if info is None:
                return None
            chunk = info.messages > 0 and info.num_chunks > 1
            self._without_row[at] = self._chunk(at, info) if chunk else not info.messages
        return self._without_row[at]

    def require_ledger(self, ledger: int) -> None:
        """Raises NotFoundError unless Pulsar lists it."""
        if ledger not in self._admin.ledger_ids(self._partition):
            raise NotFoundError(f"ledger {ledger} of {self._partition} has been trimmed")

    def _settle(self, begin: _At, end: _At, producer: str) -> None:
        """Ask of what was skipped; ``begin`` to ``end``: where chunks of a message lie."""
        left: list[_At] = []
        for at in self._skipped:
            within = begin <= at < end
            if within and producer in self._compressing:
                continue
            # An answer that never comes takes seconds.
            known = at in self._unanswered or (left and not within)
            answer = None if known else self.needs_no_row(*at)
            if answer is False:
                raise UnavailableError(
                    f"the broker's client leaves out {self._name(at)}",
                    hint="it is damaged, or a chunk of a message that the client cannot put "
                    "together; BookKeeper's reader gives it",
                )
            if answer is None and within:
                self._compressing.add(producer)
            elif answer is None:
                left.append(at)
                self._unanswered.add(left[0])
        self._skipped = left

    def _chunk(self, at: _At, info: EntryInfo) -> bool:
        uuid = info.uuid
        last = info.chunk_id == info.num_chunks - 1
        came, chunks = self._came.get(uuid, (at, 0))
        if came < at and info.chunk_id > 0 and uuid not in self._sequences:
            return info.chunk_id < chunks  # sent again
        if uuid not in self._sequences and info.chunk_id > 0:
            return not last  # it begins before what is read
        before = self._sequences.get(uuid, NO_CHUNKS)
        chunk = Chunk(*at, info.chunk_id, info.num_chunks, size=0, publish_time=0)
        sequence, outcome, _ = add_chunk(before, chunk)
        self._sequences[uuid] = sequence
        if before:
            self._begun.pop((before[0].ledger, before[0].entry), None)
        if is_incomplete(sequence):
            self._begun[sequence[0].ledger, sequence[0].entry] = uuid
        # A last chunk that completes it, and no message came.
        return outcome in ("incomplete", "duplicate")

    def _name(self, at: _At) -> str:
        return f"entry {at[0]}:{at[1]} of {self._partition}"

    def _info(self, at: _At) -> EntryInfo | None:
        """None where the broker does not say what the entry is."""
        try:
            return self._admin.entry_info(self._partition, *at)
        except (NotFoundError, UnavailableError):
            self.require_ledger(at[0])
            return None
