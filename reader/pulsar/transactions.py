"""A partition's transactions: the REST API's v3 ``transactions``."""

from __future__ import annotations

from collections.abc import Callable

from reader.errors import UnsupportedError
from reader.model import Partition, Position
from reader.pulsar.http import AdminHttp, AdminPart

__all__ = ["TransactionRequests", "max_read"]

_SETTLED = (None, "Ready", "NoSnapshot")
_RECOVERY_SECONDS = 10.0
_STALE_SECONDS = 0.3
_PAUSE_SECONDS = 0.05


class TransactionRequests(AdminPart):
    """What became of transactions."""

    def transaction_aborted(self, partition: Partition, most: int, least: int) -> bool:
        """Whether a decided transaction that wrote to the partition was aborted.

        ``most`` and ``least`` are the halves of its id, signed. Raises UnsupportedError where
        the broker has no transactions, and so cannot tell.
        """
        answer = self.http.request(
            "GET",
            f"/admin/v3/transactions/transactionInBufferStats/{partition.rest_path}/{most}/{least}",
        )
        if answer.status_code in (404, 405, 503):
            raise UnsupportedError(
                f"{partition} has messages of transactions, but the broker has none",
                hint="set transactionCoordinatorEnabled=true in the broker",
            )
        what = f"transaction ({most},{least}) of {partition}"
        return bool(self.http.check(answer, what).json().get("aborted"))


def max_read(
    http: AdminHttp,
    partition: Partition,
    last: Position,
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Position:
    """The last position that no open transaction hides; ``last`` where there are none.

    Waits, up to 10 s, for a topic that has just been loaded. ``clock`` and ``sleep``: seconds.
    """
    path = f"/admin/v3/transactions/transactionBufferStats/{partition.rest_path}"
    begun = clock()
    while True:
        answer = http.request("GET", path)
        if answer.status_code in (404, 405, 503):
            return last  # transactions are off in the broker: nothing is hidden
        stats = http.check(answer, f"the transactions of {partition}").json()
        # Just loaded, a topic looks for transactions first; until then its answer is old and
        # would leave out messages that were acknowledged long ago.
        waited = clock() - begun
        if stats.get("state") in _SETTLED or waited > _RECOVERY_SECONDS:
            text = stats.get("maxReadPosition")
            found = min(last, Position.parse(text)) if text else last
            if found == last or stats.get("ongoingTxnSize") != 0:
                return found
            # No transaction is open, and yet the broker's answer may stay behind what it has
            # acknowledged, until the next message: a topic that was written to while it loaded.
            if waited > _STALE_SECONDS:
                return last
        sleep(_PAUSE_SECONDS)
