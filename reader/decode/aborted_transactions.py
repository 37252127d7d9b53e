"""Entries of aborted transactions are not messages.

The transaction id is on the entry, so a whole batch is in or out, as for every reader. A snapshot
ends before the first open transaction, so all that are met have an outcome, which is asked for.

Markers (PulsarMarkers.proto: 21 TXN_COMMIT, 22 TXN_ABORT) name the transaction that they end, but
whoever may produce can write one. So a marker alone hides nothing; but a commit marker, which
nearly every transaction has close by, saves the question, unless another one says "aborted".
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt

from reader.decode import tables
from reader.decode.encryption.headers import read_headers
from reader.decode.tables import IN_TRANSACTION as IN
from reader.errors import UnsupportedError
from reader.model import EntryBlock, TransactionId

_COMMIT, _ABORT = 21, 22


class Transactions:
    """Remembers the outcomes of transactions; ``aborted`` is called once for each unknown one.

    ``aborted``: of some that wrote to a ledger, those that were; see ``PartitionContext``.
    """

    def __init__(
        self, aborted: Callable[[int, Collection[TransactionId]], Collection[TransactionId]]
    ) -> None:
        self._ask = aborted
        self._aborted: dict[TransactionId, bool] = {}
        self._all_say_commit: dict[TransactionId, bool] = {}

    def hide_aborted(self, seen: int, ledger_id: int, entries: npt.NDArray[np.int64]) -> None:
        """Make the entries of aborted transactions HIDDEN; ``seen``: SEEN_… bits, of ``scan``."""
        if not seen & tables.SEEN_TRANSACTION:
            return
        ours = np.flatnonzero(entries[tables.E_FLAGS] & IN != 0)
        is_marker = entries[tables.E_KIND, ours] == tables.HIDDEN
        self._read_markers(entries, ours[is_marker])
        ours = ours[~is_marker]
        ids = _ids(entries, ours)
        unknown = [one for one in dict.fromkeys(ids) if not self._is_known(one)]
        if unknown:
            aborted = self._outcome(ledger_id, unknown)
            self._aborted |= {one: one in aborted for one in unknown}
        hidden = [self._aborted.get(one, False) for one in ids]
        entries[tables.E_KIND, ours[np.array(hidden, bool)]] = tables.HIDDEN

    def _outcome(self, ledger_id: int, unknown: Sequence[TransactionId]) -> set[TransactionId]:
        try:
            return set(self._ask(ledger_id, unknown))
        except UnsupportedError:
            # Transactions were switched off since: only a marker can tell.
            if not all(one in self._all_say_commit for one in unknown):
                raise
            return set(unknown)

    def _read_markers(self, entries: npt.NDArray[np.int64], markers: npt.NDArray[np.int64]) -> None:
        kinds = entries[tables.E_MARKER, markers].tolist()
        for one, kind in zip(_ids(entries, markers), kinds, strict=True):
            if kind in (_COMMIT, _ABORT):
                before = self._all_say_commit.get(one, True)
                self._all_say_commit[one] = before and kind == _COMMIT

    def _is_known(self, one: TransactionId) -> bool:
        return one in self._aborted or self._all_say_commit.get(one, False)


def entries_in_transactions(block: EntryBlock) -> dict[TransactionId, list[int]]:
    """The entry ids of each transaction's messages in the block, whatever became of it."""
    seen, block, entries = read_headers(block)
    found: dict[TransactionId, list[int]] = {}
    if seen & tables.SEEN_TRANSACTION:
        ours = np.flatnonzero(
            (entries[tables.E_FLAGS] & IN != 0) & (entries[tables.E_KIND] != tables.HIDDEN)
        )
        for one, at in zip(_ids(entries, ours), ours.tolist(), strict=True):
            found.setdefault(one, []).append(int(block.entry_ids[at]))
    return found


def _ids(entries: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> list[TransactionId]:
    most, least = entries[tables.E_TXN_MOST, columns], entries[tables.E_TXN_LEAST, columns]
    return list(zip(most.tolist(), least.tolist(), strict=True))
