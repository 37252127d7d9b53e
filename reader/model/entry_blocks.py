"""Blocks of raw entries: what an entry source gives and a decoder takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class EntryBlock:
    """Raw entries of one ledger: what every entry source gives and every decoder takes.

    ``arena`` (uint8) holds the entries' bytes; entry i is
    ``arena[offsets[i] : offsets[i] + lengths[i]]`` and has id ``entry_ids[i]`` (int64, ascending).
    Digests are verified already. ``damaged`` names, by row number i, the entries of which every
    replica fails its digest: their bytes may be wrong and become rescued rows. ``sealed`` says, by
    row number, why a key for an encrypted entry could not be had.
    """

    ledger_id: int
    entry_ids: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    arena: npt.NDArray[np.uint8]
    damaged: Mapping[int, str] = field(default_factory=dict)
    sealed: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger_id: int, entries: Mapping[int, bytes]) -> EntryBlock:
        """The given entries, by entry id; the ids ascend."""
        lengths = np.array([len(entry) for entry in entries.values()], np.int64)
        return cls(
            ledger_id=ledger_id,
            entry_ids=np.array(list(entries), np.int64),
            offsets=np.cumsum(lengths) - lengths,
            lengths=lengths,
            arena=np.frombuffer(b"".join(entries.values()), np.uint8),
        )

    def only(self, keep: npt.NDArray[np.bool_]) -> EntryBlock:
        """Return the entries for which ``keep`` is true; the arena stays."""
        if keep.all():
            return self
        numbers = {int(row): i for i, row in enumerate(np.flatnonzero(keep))}
        return replace(
            self,
            entry_ids=self.entry_ids[keep],
            offsets=self.offsets[keep],
            lengths=self.lengths[keep],
            damaged={numbers[i]: text for i, text in self.damaged.items() if i in numbers},
            sealed={numbers[i]: text for i, text in self.sealed.items() if i in numbers},
        )

    def __len__(self) -> int:
        return len(self.entry_ids)
