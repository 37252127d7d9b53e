"""EntryRetry: an entry that its bookie did not give at once, and what its replicas answered."""

from __future__ import annotations

from enum import Enum

from reader.bookkeeper.reads.bookie_health import BookieHealth
from reader.bookkeeper.reads.pending_block import PendingBlock
from reader.bookkeeper.v3 import ENOENTRY, ENOLEDGER
from reader.errors import CorruptError, NotFoundError, PulsarLakeError, UnavailableError


class Outcome(Enum):
    """Why a replica did not give an entry; the value is a text."""

    FAILED = "failed"  # BookieHealth has the reason
    NO_LEDGER = "no such ledger"
    NO_ENTRY = "no such entry"
    ERROR = "error"
    DIGEST = "digest mismatch"

    @classmethod
    def of_status(cls, status: int) -> Outcome:
        """Return the outcome of an answer with an error."""
        return {ENOLEDGER: cls.NO_LEDGER, ENOENTRY: cls.NO_ENTRY}.get(status, cls.ERROR)


_TEMPORARY = {Outcome.FAILED, Outcome.ERROR}  # the replica may have the entry all the same


class EntryRetry:
    """One entry that is requested from one replica after the other.

    ``outcomes``: by replica, in the order of the requests; None while an answer is outstanding.
    ``given_by``: the replica that gave the bytes which are not verified yet. ``damaged``: bytes
    that a replica gave twice although they fail their digest.
    """

    __slots__ = ("damaged", "given_by", "index", "is_repeated", "mismatches", "outcomes", "pending")

    def __init__(self, pending: PendingBlock, index: int) -> None:
        self.pending = pending
        self.index = index
        self.outcomes: dict[str, Outcome | None] = {}
        self.given_by = ""
        self.mismatches: dict[str, bytes] = {}  # bytes that failed their digest, by replica
        self.damaged: bytes | None = None
        self.is_repeated = False

    @property
    def ledger_id(self) -> int:
        return self.pending.ledger.ledger_id

    @property
    def entry(self) -> int:
        return self.pending.first + self.index

    @property
    def replicas(self) -> tuple[str, ...]:
        return self.pending.ledger.replicas(self.entry)

    def record_mismatch(self, body: bytes) -> None:
        """Record that the bytes fail their digest."""
        bookie, self.given_by = self.given_by, ""
        if self.mismatches.get(bookie) == body:
            self.damaged = body
        self.mismatches[bookie] = body
        self.outcomes[bookie] = Outcome.DIGEST

    def skip_silent_replicas(self) -> bool:
        """Record replicas that were not asked as failed. Return whether there are any."""
        silent = [bookie for bookie in self.replicas if bookie not in self.outcomes]
        self.outcomes.update(dict.fromkeys(silent, Outcome.FAILED))
        return bool(silent)

    def repeat(self) -> bool:
        """Ask each replica once more if bytes failed their digest. Return whether that is so."""
        if not self.mismatches or self.is_repeated:
            return False
        self.is_repeated = True
        self.outcomes.clear()
        return True

    @property
    def is_damaged(self) -> bool:
        """Whether every copy fails its digest. ``damaged`` is then what bookies store."""
        return self.damaged is not None and _TEMPORARY.isdisjoint(self.outcomes.values())

    def error(self, health: BookieHealth) -> PulsarLakeError:
        """Return the error of an entry that no replica gives."""
        if set(self.outcomes.values()) == {Outcome.NO_LEDGER}:
            return NotFoundError(
                f"no replica has ledger {self.ledger_id}",
                hint=f"it has been deleted; if Pulsar still lists it, pulsar.lost_ledgers = "
                f"[{self.ledger_id}] declares it lost: docs/operations.md",
            )
        name = f"entry {self.ledger_id}:{self.entry}"
        reasons = ", ".join(
            health.reason(bookie)
            if outcome is Outcome.FAILED
            else f"bookie {bookie}: {outcome.value if outcome else 'no answer'}"
            for bookie, outcome in self.outcomes.items()
        )
        if not _TEMPORARY.isdisjoint(self.outcomes.values()):
            return UnavailableError(
                f"no replica gives {name} ({reasons})", hint="check that the bookies run"
            )
        if self.mismatches:
            return UnavailableError(
                f"no replica gives {name} twice in the same way ({reasons})",
                hint="its bytes change on their way: check the network to the bookies",
            )
        return CorruptError(
            f"{name} is lost: all its replicas answer without it ({reasons})",
            hint="recover the bookie; if it is gone for good, pulsar.lost_ledgers declares the "
            "ledger lost: docs/operations.md",
        )
