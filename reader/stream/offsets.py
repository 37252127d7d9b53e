"""Where a stream is: of each partition of its topics, the last entry that it has read.

Spark keeps it in the checkpoint as JSON, and compares it as text: so it has one spelling.

    {"format": 1, "topics": {"public/default/flights": {
        "at": {"0": "7:20", "1": "9:-1"},
        "created": {"0": "2026-11-24T04:00:00.000Z", …},
        "expired": {"0": ["3:9", 1795568582000]}, "givenUp": {"0": "5:17"},
        "missing": {"1": 5}}}}

It never names a tier: a batch between two offsets has the same rows wherever they lie by then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reader.errors import ConfigurationError
from reader.model import BEFORE_ALL, Partition, Position, Topic

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class PartitionOffset:
    """Where a stream is in one partition.

    ``at``: the last entry that was read; entry -1: none of that ledger, which had some.
    ``created_at``: its managed ledger's creation time, as Pulsar prints it, "" where nobody has
    said it: a topic that was deleted and made again has another one. ``expired``: the last position
    of which a row had expired from the table by then, and before which publish time
    (``TopicTable.expired_upto``, ``partition_expired_before``); (-1:-1, 0) for none. ``given_up``:
    where the last chunked message begins that had been given up by then
    (``TopicTable.given_up``). ``missing``: how many entries had been deleted where the stream
    began, of a partition in which it has read nothing yet.
    """

    at: Position = BEFORE_ALL
    created_at: str = ""
    expired: tuple[Position, int] = (BEFORE_ALL, 0)
    given_up: Position = BEFORE_ALL
    missing: int = 0


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """By partition; one that is not there was not known yet, and is read from its beginning."""

    partitions: Mapping[Partition, PartitionOffset] = field(default_factory=dict)

    def of(self, partition: Partition) -> PartitionOffset:
        return self.partitions.get(partition, PartitionOffset())

    def to_json(self) -> str:
        """One line, the same for the same offset."""
        topics: dict[str, dict[str, dict[str, Any]]] = {}
        for partition, one in sorted(self.partitions.items()):
            topic = topics.setdefault(partition.topic.local_name, {"at": {}})
            parts = {
                "at": str(one.at),
                "created": one.created_at or None,
                "expired": _expired_json(one.expired),
                "givenUp": str(one.given_up) if one.given_up != BEFORE_ALL else None,
                "missing": one.missing or None,
            }
            for name, value in parts.items():
                if value is not None:
                    topic.setdefault(name, {})[str(partition.index)] = value
        return json.dumps(
            {"format": _FORMAT, "topics": topics}, separators=(",", ":"), sort_keys=True
        )

    @classmethod
    def from_json(cls, text: str) -> StreamOffset:
        """Raises ConfigurationError for anything that ``to_json`` has not written."""
        try:
            value = json.loads(text)
            if value["format"] != _FORMAT:
                raise ConfigurationError(
                    f"the checkpoint has positions in a format of another version: "
                    f"{str(value['format'])[:20]}",
                    hint="read it with the version of pulsar-lake that wrote it, or a newer one",
                )
            return cls(dict(_partitions(value["topics"])))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                f"the checkpoint has no positions of a Pulsar stream: {text[:100]!r}",
                hint="a checkpoint belongs to one query: give this one another checkpointLocation",
            ) from error


def _expired_json(expired: tuple[Position, int]) -> list[Any] | None:
    upto, before = expired
    return None if upto == BEFORE_ALL else [str(upto), before]


def _partitions(topics: Mapping[str, Any]) -> list[tuple[Partition, PartitionOffset]]:
    found = []
    for name, parts in topics.items():
        topic = Topic.parse(name)
        for index, at in parts["at"].items():
            expired = parts.get("expired", {}).get(index)
            given_up = parts.get("givenUp", {}).get(index)
            offset = PartitionOffset(
                at=Position.parse(at),
                created_at=str(parts.get("created", {}).get(index, "")),
                expired=_expired_of(expired) if expired is not None else (BEFORE_ALL, 0),
                given_up=BEFORE_ALL if given_up is None else Position.parse(given_up),
                missing=int(parts.get("missing", {}).get(index, 0)),
            )
            found.append((Partition(topic, int(index)), offset))
    return found


def _expired_of(value: Any) -> tuple[Position, int]:
    upto, before = value
    return Position.parse(upto), int(before)
