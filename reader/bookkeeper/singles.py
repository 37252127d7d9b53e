"""What is known of a piece's entries while they are read one by one.

Most are numbers in arrays, and a ``Share`` of one bookie. An ``Attempt`` is made for an entry only
when its bookie does not give it at once.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt

from reader.bookkeeper.piece import ASKED, Bodies, Piece
from reader.bookkeeper.v3 import ENOENTRY, ENOLEDGER

__all__ = [
    "ALONE",
    "INDEX_BITS",
    "MAY_HAVE_IT",
    "OUTCOMES",
    "Attempt",
    "Outcome",
    "Share",
    "Singles",
]

# A request's number is the number of its piece, and the entry's index in it; or ``ALONE``.
INDEX_BITS = 14
ALONE = (1 << INDEX_BITS) - 1

Int64s = npt.NDArray[np.int64]


class Outcome(Enum):
    """Why a replica did not give an entry; the value is the text of it."""

    DOWN = "failed"  # the pool has the whole line
    NO_LEDGER = "no such ledger"
    NO_ENTRY = "no such entry"
    ERROR = "error"
    DIGEST = "digest mismatch"


OUTCOMES = {ENOLEDGER: Outcome.NO_LEDGER, ENOENTRY: Outcome.NO_ENTRY}
"""By the status of a bookie's answer; any other status is an ``ERROR``."""

MAY_HAVE_IT = frozenset({Outcome.DOWN, Outcome.ERROR})
"""After these the replica may have the entry all the same."""


class Share:
    """What one bookie is to give of a piece: the entries at ``indices``, ``sent`` of them asked."""

    __slots__ = ("indices", "sent")

    def __init__(self) -> None:
        self.indices = np.empty(0, np.int64)
        self.sent = 0

    def add(self, indices: Int64s) -> None:
        self.indices = np.concatenate((self.indices, indices)) if len(self.indices) else indices

    def take(self, most: int) -> Int64s:
        """The next to be asked."""
        taken = self.indices[self.sent : self.sent + most]
        self.sent += len(taken)
        return taken

    def take_back(self) -> Int64s:
        """Those that were not asked; it has none any more."""
        left = self.indices[self.sent :]
        self.indices = self.indices[: self.sent]
        return left


class Attempt:
    """One entry that was not plain: the replicas that were asked, and what they answered.

    ``outcomes`` in the order of requests; None while an answer is outstanding. ``gave``: the
    replica that answered with an entry.
    """

    __slots__ = ("bad", "damaged", "gave", "index", "outcomes", "repeated", "single")

    def __init__(self, single: Singles, index: int) -> None:
        self.single = single
        self.index = index
        self.outcomes: dict[str, Outcome | None] = {}
        self.gave = ""
        self.bad: dict[str, bytes] = {}  # bytes that failed their digest, by bookie
        self.damaged: bytes | None = None  # those that a bookie gave twice
        self.repeated = False

    @property
    def entry(self) -> int:
        return self.single.piece.first + self.index

    @property
    def is_over(self) -> bool:
        """Whether the entry is there, or no longer wanted."""
        return self.single.piece.is_done or bool(self.single.bodies.lengths[self.index] >= 0)

    def failed_digest(self, body: bytes) -> None:
        """The bookie that answered gave ``body``."""
        if self.bad.get(self.gave) == body:
            self.damaged = body
        self.bad[self.gave] = body
        self.outcomes[self.gave] = Outcome.DIGEST

    def repeat(self) -> None:
        """Ask each replica once more."""
        self.repeated = True
        self.outcomes.clear()


class Singles:
    """A piece that is read entry by entry; entry i has the request ``base`` + i.

    ``owing``: answers that are outstanding, by bookie.
    """

    __slots__ = ("attempts", "base", "bodies", "damaged", "owing", "piece", "shares")

    def __init__(self, piece: Piece, number: int) -> None:
        self.piece = piece
        self.base = number << INDEX_BITS
        self.bodies = Bodies(piece.last - piece.first + 1, piece.estimate)
        self.shares: dict[str, Share] = {}
        self.owing: dict[str, int] = {}
        self.attempts: dict[int, Attempt] = {}
        self.damaged: dict[int, str] = {}

    def attempt(self, index: int) -> Attempt:
        if index not in self.attempts:
            self.attempts[index] = Attempt(self, index)
        return self.attempts[index]

    def position(self, bookie: str) -> int:
        """The bookie's place in the piece's ensemble."""
        return self.piece.ensemble.index(bookie)

    def outstanding(self, bookie: str) -> Int64s:
        """Which of its share a bookie was asked for, and has not answered."""
        share = self.shares[bookie]
        asked = share.indices[: share.sent]
        left: Int64s = asked[self.bodies.state[asked] == ASKED + self.position(bookie)]
        return left

    def planned(self, index: int) -> str:
        """The bookie in whose share an entry is."""
        return next(one for one, share in self.shares.items() if index in share.indices)
