"""The durable subscription that keeps Pulsar from trimming, the hold: made, marked and moved.

Endpoints: ``persistent/{topic}/subscription`` of the REST API's v2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Position, Topic
from reader.pulsar.http import AdminPart, reason_of

TABLE_KEY = "pulsar-lake.table"
TABLE_ID_KEY = "pulsar-lake.table-id"
WATERMARK_KEY = "pulsar-lake.watermark"
PARTITION_KEY = "pulsar-lake.partition"
"""Properties of a hold: the table that it was moved for, by its URI and by its id in the Delta log
(two stores may have the same URI), the last ledger that was wholly in there, and of which partition
(Pulsar gives the subscriptions of the first partition, with their properties, to one that is added
later)."""
LOST_KEY = "pulsar-lake.lost-upto"
"""Property by which an operator gives up what an old copy of the table lacks, up to this ledger."""

# 412 stands for a position that cannot be found, and for two of these; 500 for anything.
_BUSY = "Subscription Busy"
_FEW = {
    "getPreciseBacklog": "false",
    "subscriptionBacklogSize": "false",
    "excludePublishers": "true",
    "excludeConsumers": "true",
}
_NOT_SAVED = "unable to persist"  # of a topic that is being unloaded, or of failing bookies
_PREFIX = "needs to be prefixed by the authentication role"
_CHANGED = "BadVersionException"  # of the metadata store; in what a 500 says
_CHANGE_SECONDS = 0.1
"""How long a change of another client may take: a cursor's ledger is made, or its state is put."""


@dataclass(frozen=True, slots=True)
class HeldTable:
    """What a hold says of the table that it was moved for; "" and -1: nothing.

    ``lost_upto``: the ledger up to which an operator has given up what the table lacks.
    """

    uri: str
    id: str
    watermark: int
    lost_upto: int = -1

    @property
    def reached(self) -> int:
        """The last ledger that was wholly in the table, by all that is said."""
        return max(self.watermark, self.lost_upto)

    def is_of(self, uri: str, table_id: str) -> bool:
        """Whether that table can be the one at ``uri`` with this id in its log."""
        return self.id == table_id or (not self.id and self.uri in ("", uri))

    @classmethod
    def of(cls, properties: Mapping[str, str], partition: Partition) -> HeldTable | None:
        """None for a subscription that is no hold, or was not moved yet.

        Properties that are another partition's say nothing of this one's ledgers.
        """
        if TABLE_KEY not in properties and LOST_KEY not in properties:
            return None
        watermark = lost_upto = -1
        if properties.get(PARTITION_KEY, str(partition)) == str(partition):
            watermark = _ledger(properties.get(WATERMARK_KEY))
            lost_upto = _ledger(properties.get(LOST_KEY))
            if watermark >= 0:  # no more can be missing than there was
                lost_upto = min(lost_upto, watermark)
        return cls(
            properties.get(TABLE_KEY, ""), properties.get(TABLE_ID_KEY, ""), watermark, lost_upto
        )


class SubscriptionRequests(AdminPart):
    """Making, reading and moving one subscription of a partition."""

    def create_hold(
        self, partition: Partition, name: str, properties: Mapping[str, str] | None = None
    ) -> bool:
        """Make the durable subscription at the earliest message, with ``properties``.

        False where nothing was done: it exists, or Pulsar is making it already, for somebody else.
        Raises UnavailableError where Pulsar could not save its position.
        """
        body: dict[str, object] = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
        if properties:
            body["properties"] = dict(properties)
        path = f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}"
        answer = self.http.request("PUT", path, json=body)
        return answer.status_code != 409 and self._done(answer, f"topic {partition}")

    def hold_properties(self, partition: Partition, name: str) -> dict[str, str]:
        """The subscription's properties; empty where there is none."""
        path = f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}/properties"
        answer = self.http.request("GET", path)
        if answer.status_code == 404:
            return {}
        found = self.http.check(answer, f"subscription {name} of {partition}")
        return {str(key): str(value) for key, value in (found.json() or {}).items()}

    def subscription_properties(self, partition: Partition) -> dict[str, dict[str, str]]:
        """The properties of all the partition's subscriptions, by name: one request."""
        path = f"/admin/v2/persistent/{partition.rest_path}/stats"
        stats = self.http.get(path, f"topic {partition}", **_FEW)
        return {
            str(name): {
                str(key): str(value) for key, value in one["subscriptionProperties"].items()
            }
            for name, one in stats["subscriptions"].items()
            if one.get("subscriptionProperties")
        }

    def note_hold(self, partition: Partition, name: str, properties: Mapping[str, str]) -> bool:
        """Note ``properties`` down with the subscription, in place of what was noted before.

        False where nothing was done, for the state that Pulsar keeps of the subscription was just
        changed for another client: the properties, or where it stands. They have to be read anew.
        """
        path = f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}/properties"
        answer = self.http.request("PUT", path, json=dict(properties))
        if answer.status_code == 500 and _CHANGED in reason_of(answer):
            self.sleep(_CHANGE_SECONDS)
            return False
        self.http.check(answer, f"subscription {name} of {partition}")
        return True

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

        Raises UnavailableError where it could not be saved, ConfigurationError for a name that the
        namespace does not allow, and what ``AdminHttp.check`` raises.
        """
        reason = reason_of(answer) if answer.status_code in (412, 500) else ""
        if _PREFIX in reason:
            raise ConfigurationError(
                f"no permission for {what}: its namespace wants subscriptions that begin with "
                "the role",
                hint="set offload.subscription to the role's name, '-' and more; or the "
                "namespace's subscription auth mode to None",
            )
        if _BUSY in reason:
            return False
        if _NOT_SAVED in reason:
            raise UnavailableError(
                f"{what}: Pulsar could not save the subscription's position", hint=reason
            )
        self.http.check(answer, what)
        return True


def _ledger(noted: str | None) -> int:
    return int(noted) if noted is not None and noted.isdecimal() else -1


def _quoted(name: str) -> str:
    return Topic("-", "-", name).rest_path.split("/")[2]
