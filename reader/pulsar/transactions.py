"""A partition's transactions: the REST API's v3 ``transactions``.

What a broker knows of them is in the topic's *transaction buffer*, which each load of the topic
makes anew, out of a snapshot and of what was written since. Until that is done it answers like an
empty one: nothing open, nothing aborted; and a topic that nobody has loaded is "not found". So
only a buffer that is ready is believed (Pulsar's ``TopicTransactionBuffer``, 4.2).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import httpx

from reader.errors import UnavailableError, UnsupportedError
from reader.model import Partition, Position, TransactionId
from reader.pulsar.http import AdminPart, reason_of

_READY = ("Ready", "NoSnapshot")
"""``NoSnapshot``: no transaction has written to the topic yet. All others: it is being loaded or
unloaded, or about to take its first transaction; its consumers get nothing, either."""

_OFF = "transactionCoordinatorEnabled"  # in the reason of a broker that has no transactions

_FIRST_VERSION = (2, 8)
_VERSION = re.compile(r'\s*"?(\d{1,9})\.(\d{1,9})(?!\d)')  # text, or a JSON string

_RECOVERY_SECONDS = 10.0
_BEHIND_SECONDS = 0.3
_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE = 1.0
_ASKED_AT_ONCE = 100  # of these some are asked again where the topic is loaded meanwhile


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A transaction buffer that is ready. ``loaded_at``: tells loads apart; ``open``:
    transactions; ``none_aborted``: it knows of none, so that it would say so of each."""

    loaded_at: int
    max_read: Position
    open: int
    none_aborted: bool


class _NotReady:
    """It is being loaded, or the broker does not say."""


class TransactionRequests(AdminPart):
    """What transactions hide, and what became of them."""

    def aborted_transactions(
        self, partition: Partition, transactions: Iterable[TransactionId]
    ) -> set[TransactionId]:
        """Which of the decided transactions that wrote to the partition were aborted.

        Raises UnsupportedError where the broker has no transactions, and so cannot tell;
        UnavailableError where its buffer does not get ready within 10 s.
        """
        wanted = list(transactions)
        found: set[TransactionId] = set()
        for first in range(0, len(wanted), _ASKED_AT_ONCE):
            found |= self._aborted_of(partition, wanted[first : first + _ASKED_AT_ONCE])
        return found

    def _aborted_of(
        self, partition: Partition, transactions: Sequence[TransactionId]
    ) -> set[TransactionId]:
        asking = _Asking(self)
        aborted: set[TransactionId] = set()
        before = self._loads.get(partition)
        all_said = refused = False
        while True:
            # "Aborted" is never said without knowing; "not aborted", of one or of all, counts if
            # one and the same load was ready before and after.
            found = self._buffer(partition)
            if found is None:
                raise UnsupportedError(
                    f"{partition} has messages of transactions, but the broker has none",
                    hint="set transactionCoordinatorEnabled=true in the broker",
                )
            ready = found if isinstance(found, _Buffer) else None
            if ready and ready.loaded_at == before and (all_said or ready.none_aborted):
                return aborted
            if not asking.again(pause=refused or not ready):
                raise _recovering(partition)
            before, all_said, refused = None, False, False
            if not ready:
                continue
            self._loads[partition] = before = ready.loaded_at
            if not ready.none_aborted:
                all_said = self._ask_each(partition, transactions, aborted)
                refused = not all_said
                if len(aborted) == len(transactions):
                    return aborted

    def _ask_each(
        self,
        partition: Partition,
        transactions: Sequence[TransactionId],
        aborted: set[TransactionId],
    ) -> bool:
        """Add those that were aborted to ``aborted``; whether there was an answer for each."""
        for one in transactions:
            said = one in aborted or self._said_aborted(partition, *one)
            if said is None:
                return False
            if said:
                aborted.add(one)
        return True

    @cached_property
    def _loads(self) -> dict[Partition, int]:
        """The last load of each partition that was ready."""
        return {}

    def _said_aborted(self, partition: Partition, most: int, least: int) -> bool | None:
        answer = self._ask("transactionInBufferStats", partition, f"/{most}/{least}")
        if answer.status_code in (404, 503):
            return None
        what = f"transaction ({most},{least}) of {partition}"
        return bool(self.http.check(answer, what).json().get("aborted"))

    def may_have_aborted(self, partition: Partition) -> bool:
        """Whether the broker knows of aborted transactions in the partition, or does not count.

        Raises UnavailableError where its buffer does not get ready within 10 s.
        """
        asking = _Asking(self)
        while not isinstance(buffer := self._buffer(partition), _Buffer):
            if buffer is None:
                return False
            if not asking.again(pause=True):
                raise _recovering(partition)
        return not buffer.none_aborted

    def max_read(self, partition: Partition, last: Position) -> Position | None:
        """The last position that no open transaction hides; ``last`` where there are none.

        ``last``: the last entry written, as listed before. Waits, up to 10 s, for a topic that has
        just been loaded; None where its broker cannot tell by then.
        """
        asking = _Asking(self)
        while True:
            buffer = self._buffer(partition)
            if buffer is None:
                return last
            if isinstance(buffer, _Buffer):
                found = min(last, buffer.max_read)
                if found == last or buffer.open:
                    return found
                # No transaction is open, and yet the buffer is behind the last entry, as it may
                # be until the next message after a load. Or that entry was written this moment:
                # the buffer has heard of all others (Pulsar tells it of one after the other).
                if asking.waited > _BEHIND_SECONDS and self._is_plain(partition, last):
                    return last
            if not asking.again(pause=True):
                return None

    def _is_plain(self, partition: Partition, at: Position) -> bool:
        """Whether this entry, if there is one, is of no transaction. Takes the right to consume."""
        if at.entry < 0:
            return True
        path = f"/admin/v2/persistent/{partition.rest_path}/ledger/{at.ledger}/entry/{at.entry}"
        answer = self.http.request("GET", path)
        if answer.status_code in (401, 403):
            self.http.check(answer, f"entry {at} of {partition}")
        return answer.is_success and "X-Pulsar-txnid-most-bits" not in answer.headers

    def _buffer(self, partition: Partition) -> _Buffer | _NotReady | None:
        """As it is now; None where the broker has no transactions."""
        answer = self._ask("transactionBufferStats", partition)
        if answer.status_code in (404, 405) and not _by_pulsar(answer):
            # Older than transactions; or a proxy that knows of no broker for this moment.
            return None if self._is_older() else _NotReady()
        if answer.status_code == 404:
            # Not loaded, and nobody may come to load it.
            self.http.request("GET", f"/admin/v2/persistent/{partition.rest_path}/internalStats")
            return _NotReady()
        if answer.status_code == 503:
            return None if _OFF in reason_of(answer) else _NotReady()
        self.http.check(answer, f"the transactions of {partition}")
        if not answer.content:
            return None  # a system topic, which has no transactions
        stats = answer.json()
        text = stats.get("maxReadPosition")
        if stats.get("state") not in _READY or not text:
            return _NotReady()
        return _Buffer(
            loaded_at=int(stats.get("recoverStartTime") or 0),
            max_read=Position.parse(text),
            open=int(stats.get("ongoingTxnSize") or 0),
            none_aborted=stats.get("totalAbortedTransactions") == 0,  # not in Pulsar 2
        )

    def _is_older(self) -> bool:
        """Whether Pulsar says that its version has no transactions."""
        answer = self.http.request("GET", "/admin/v2/brokers/version")
        found = _VERSION.match(answer.text) if answer.is_success else None
        return found is not None and (int(found[1]), int(found[2])) < _FIRST_VERSION

    def _ask(self, what: str, partition: Partition, of: str = "") -> httpx.Response:
        path = f"/admin/v3/transactions/{what}/{partition.rest_path}{of}"
        return self.http.request("GET", path)


class _Asking:
    """Asks again for up to 10 s, after pauses that grow."""

    def __init__(self, part: AdminPart) -> None:
        self._part = part
        self._begun = part.clock()
        self._pause = _PAUSE_SECONDS

    @property
    def waited(self) -> float:
        return self._part.clock() - self._begun

    def again(self, *, pause: bool) -> bool:
        """Whether there is time to ask again; after a pause."""
        if self.waited > _RECOVERY_SECONDS:
            return False
        if pause:
            self._part.sleep(self._pause)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True


def _recovering(partition: Partition) -> UnavailableError:
    return UnavailableError(
        f"{partition}: its broker is still recovering the topic's transactions",
        hint="try again; transactionBufferStats of Pulsar's admin shows its state",
    )


def _by_pulsar(answer: httpx.Response) -> bool:
    """Whether a refusal is Pulsar's own, not that of a server without such a path."""
    try:
        return "reason" in answer.json()
    except (ValueError, TypeError):
        return False
