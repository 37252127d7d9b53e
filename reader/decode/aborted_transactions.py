"""Entries of aborted transactions are not messages.

The transaction id is on the entry, so a whole batch is in or out, as for every reader. Markers
(PulsarMarkers.proto: 21 TXN_COMMIT, 22 TXN_ABORT) name the transaction that they end; where the
marker is not among the given entries, the outcome is asked for. A snapshot ends before the first
open transaction, so all that are met have an outcome.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from reader.decode.tables import (
    E_FLAGS,
    E_KIND,
    E_MARKER,
    E_TXN_LEAST,
    E_TXN_MOST,
    HIDDEN,
    SEEN_TRANSACTION,
)
from reader.decode.tables import IN_TRANSACTION as IN

__all__ = ["Transactions"]

_COMMIT, _ABORT = 21, 22


class Transactions:
    """Remembers the outcomes of transactions; ``aborted`` is called once for each unknown one."""

    def __init__(self, aborted: Callable[[int, int], bool]) -> None:
        self._ask = aborted
        self._aborted: dict[tuple[int, int], bool] = {}

    def hide_aborted(self, seen: int, entries: npt.NDArray[np.int64]) -> None:
        """Make the entries of aborted transactions HIDDEN; ``seen``: SEEN_… bits, of ``scan``."""
        if not seen & SEEN_TRANSACTION:
            return
        ours = np.flatnonzero(entries[E_FLAGS] & IN != 0)
        ids = list(
            zip(
                entries[E_TXN_MOST, ours].tolist(), entries[E_TXN_LEAST, ours].tolist(), strict=True
            )
        )
        hidden = (entries[E_KIND, ours] == HIDDEN).tolist()
        markers = entries[E_MARKER, ours].tolist()
        for one, is_marker, marker in zip(ids, hidden, markers, strict=True):
            if is_marker and marker in (_COMMIT, _ABORT):
                self._aborted[one] = marker == _ABORT
        for i, one, is_marker in zip(ours.tolist(), ids, hidden, strict=True):
            if is_marker:
                continue
            if one not in self._aborted:
                self._aborted[one] = self._ask(*one)
            if self._aborted[one]:
                entries[E_KIND, i] = HIDDEN
