"""What the broker says of single entries: the REST API's v2 ``ledger/{id}/entry/{id}``."""

from reader.errors import UnavailableError
from reader.model import Partition
from reader.pulsar.http import AdminPart

_SECONDS = 5.0
"""Pulsar 4.2 never answers for a chunk of a compressed message, of which it decompresses a part."""


class EntryRequests(AdminPart):
    """What entries are, without their payloads."""

    def is_hidden(self, partition: Partition, ledger: int, entry: int) -> bool:
        """Whether no reader is given it: a marker, or written by a transaction that was aborted.

        "Aborted" is never said without knowing; "not aborted" is, while the topic is being loaded.
        Raises NotFoundError or UnavailableError where the broker does not say what the entry is.
        """
        path = f"/admin/v2/persistent/{partition.rest_path}/ledger/{ledger}/entry/{entry}"
        what = f"entry {ledger}:{entry} of {partition}"
        said = self.http.check(self.http.request("HEAD", path, timeout=_SECONDS), what).headers
        if (of := said.get("X-Pulsar-Message-ID")) != f"{ledger}:{entry}":
            raise UnavailableError(f"the broker does not say what {what} is: it answers for {of}")
        return "X-Pulsar-marker-type" in said or said.get("X-Pulsar-txn-aborted") == "true"
