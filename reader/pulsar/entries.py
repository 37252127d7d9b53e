"""What the broker says of single entries: the REST API's v2 ``ledger/{id}/entry/{id}``."""

from __future__ import annotations

from dataclasses import dataclass

from reader.errors import UnavailableError
from reader.model import Partition
from reader.pulsar.http import AdminPart

__all__ = ["EntryInfo", "EntryRequests"]


_SECONDS = 5.0
"""Pulsar 4.2 never answers for a chunk of a compressed message, of which it decompresses a part."""


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """An entry's header.

    ``messages``: how many readers are given of it, a chunk counted as one; 0 for a marker, and for
    what an aborted transaction wrote. ``num_chunks``: of the message ``uuid``; 0 if it is whole.
    """

    messages: int
    uuid: str = ""
    chunk_id: int = 0
    num_chunks: int = 0


class EntryRequests(AdminPart):
    """What entries are, without their payloads."""

    def entry_info(self, partition: Partition, ledger: int, entry: int) -> EntryInfo:
        """Raises NotFoundError or UnavailableError where the broker cannot read the entry."""
        path = f"/admin/v2/persistent/{partition.rest_path}/ledger/{ledger}/entry/{entry}"
        what = f"entry {ledger}:{entry} of {partition}"
        said = self.http.check(self.http.request("HEAD", path, timeout=_SECONDS), what).headers
        try:
            if said["X-Pulsar-Message-ID"] != f"{ledger}:{entry}":
                raise ValueError(f"it answers for {said['X-Pulsar-Message-ID']}")
            if "X-Pulsar-marker-type" in said or said.get("X-Pulsar-txn-aborted") == "true":
                return EntryInfo(0)
            chunks = int(said.get("X-Pulsar-num-chunks-from-msg", 0))
            if chunks > 1:
                chunk = int(said["X-Pulsar-chunk-id"])
                return EntryInfo(1, said["X-Pulsar-uuid"], chunk, chunks)
            return EntryInfo(max(1, int(said.get("X-Pulsar-num-batch-message", 1))))
        except (KeyError, ValueError) as error:
            raise UnavailableError(f"the broker does not say what {what} is: {error}") from error
