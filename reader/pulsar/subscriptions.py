"""The durable subscription that keeps Pulsar from trimming, the hold: made, marked and moved.

Endpoints: ``persistent/{topic}/subscription`` of the REST API's v2.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from reader.errors import UnavailableError
from reader.model import Partition, Position, Topic
from reader.pulsar.http import AdminPart, reason_of

__all__ = ["SubscriptionRequests"]

# 412 stands for a position that cannot be found, and for these two.
_BUSY = "Subscription Busy"
_NOT_SAVED = "unable to persist"  # of a topic that is being unloaded, or of failing bookies


class SubscriptionRequests(AdminPart):
    """Making, reading and moving one subscription of a partition."""

    def create_hold(self, partition: Partition, name: str) -> None:
        """Make the durable subscription at the earliest message.

        Nothing is done where it exists, or Pulsar is making it already, for somebody else. Raises
        UnavailableError where Pulsar could not save its position.
        """
        body = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
        path = f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}"
        answer = self.http.request("PUT", path, json=body)
        if answer.status_code != 409:
            self._done(answer, f"topic {partition}")

    def hold_properties(self, partition: Partition, name: str) -> dict[str, str]:
        """The subscription's properties; empty where there is none."""
        path = f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}/properties"
        answer = self.http.request("GET", path)
        if answer.status_code == 404:
            return {}
        found = self.http.check(answer, f"subscription {name} of {partition}")
        return {str(key): str(value) for key, value in (found.json() or {}).items()}

    def note_hold(self, partition: Partition, name: str, properties: Mapping[str, str]) -> None:
        """Note ``properties`` down with the subscription, in place of what was noted before."""
        path = f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}/properties"
        self.http.send("PUT", path, f"subscription {name} of {partition}", dict(properties))

    def move_hold(self, partition: Partition, name: str, position: Position) -> bool:
        """Make ``position`` the next entry that the subscription reads.

        False where nothing was done because Pulsar is moving it already, for another client. Raises
        UnavailableError where Pulsar could not save the position: before another attempt the
        ledgers have to be listed anew, as another client may have moved it further.
        """
        body = {
            "ledgerId": position.ledger,
            "entryId": position.entry,
            "partitionIndex": -1,
            "isExcluded": False,
        }
        path = (
            f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}/resetcursor"
        )
        answer = self.http.request("POST", path, json=body)
        return self._done(answer, f"subscription {name} of {partition}")

    def _done(self, answer: httpx.Response, what: str) -> bool:
        """Whether a position was set; False while Pulsar sets it for another client.

        Raises UnavailableError where it could not be saved, and what ``AdminHttp.check`` raises.
        """
        reason = reason_of(answer) if answer.status_code == 412 else ""
        if _BUSY in reason:
            return False
        if _NOT_SAVED in reason:
            raise UnavailableError(
                f"{what}: Pulsar could not save the subscription's position", hint=reason
            )
        self.http.check(answer, what)
        return True


def _quoted(name: str) -> str:
    return Topic("-", "-", name).rest_path.split("/")[2]
