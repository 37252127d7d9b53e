"""What a decoder asks of a partition outside of the entries that it is given."""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from reader.decode.chunk_sequence import NO_CHUNKS, ChunkSequence
from reader.errors import UnsupportedError
from reader.model import EntryBlock, TransactionId


class PartitionContext(Protocol):
    """The rest of the partition: what lies outside of the entries that a decoder is given."""

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        """Which of the transactions that wrote to entries of the ledger were aborted.

        Asked for committed and aborted transactions only. Raises UnsupportedError where this cannot
        be found out.
        """

    def sequence_before(self, uuid: bytes) -> ChunkSequence:
        """How far the message has come in the entries before the first given one.

        By its chunks from the latest chunk 0 on, or from the lookback position on.
        """

    def pick(self, ledger: int, entries: Sequence[int]) -> Iterable[EntryBlock]:
        """Entries that were given, or that ``sequence_before`` has named; their ids ascend.

        Each of them is given and undamaged, or an error is raised.
        """


class NoContext:
    """The partition has no entries except those given."""

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        """Raises UnsupportedError."""
        most, least = next(iter(transactions))
        raise UnsupportedError(f"the outcome of transaction ({most},{least}) is not known")

    def sequence_before(self, uuid: bytes) -> ChunkSequence:
        """None."""
        return NO_CHUNKS

    def pick(self, ledger: int, entries: Sequence[int]) -> Iterable[EntryBlock]:
        """Raises UnsupportedError."""
        raise UnsupportedError(f"entry {ledger}:{entries[0]} is not available")
