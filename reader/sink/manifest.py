"""What a write sends, decided once: partitions, their staged entries and sequence ids.

``u32 size`` (little-endian), that many bytes of JSON, and the bytes of runs that were not worth a
file (``docs/formats.md``). The object is put if absent: whoever was first decides what is sent, and
everybody else sends the same.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from reader.errors import CorruptError
from reader.model import Partition, Position
from reader.pulsar import NO_LOG, LogEnd
from reader.sink.staged_entries import Run, ShownSchema, StagedFile
from reader.storage import component

_FORMAT = 1
_PRODUCER = re.compile(r"pulsar-lake-(.+)-[0-9a-f]{8}", re.DOTALL)
_IDS_A_MILLISECOND = 1000
"""More than a partition takes in the long run; what takes more goes on behind its last id."""


@dataclass(frozen=True, slots=True)
class PartitionEntries:
    """What one partition gets: ``parts`` (file or "", run) in the order in which they are sent.

    ``first``: the first of its ``ids`` sequence ids. ``before``: the last one that versions before
    have given to the partition; -1: none. ``schema``: of the last of its tasks. ``end``: where the
    partition ended when this was decided, so that all of it is stored behind that position.
    """

    partition: str
    first: int
    ids: int
    before: int
    schema: ShownSchema
    parts: Sequence[tuple[str, Run]]
    end: LogEnd = NO_LOG


@dataclass(frozen=True, slots=True)
class Manifest:
    """``producer``: the name of all its producers. ``created``: ms since the epoch. ``named``:
    whether the same write may be run again: else maintenance deletes what it has not sent.

    ``following``: by partition, the sequence id that comes next, of all partitions that this name
    has ever sent to. ``sent``: nothing is left to be done. ``inline``: bytes of runs without a
    file. ``encrypted``: whether entries are. ``path``: where it lies, below the storage's root.
    """

    producer: str
    version: int
    created: int
    rows: int = 0
    partitions: Sequence[PartitionEntries] = ()
    following: Mapping[str, int] = field(default_factory=dict)
    encrypted: bool = False
    sent: bool = False
    named: bool = True
    inline: bytes = b""
    files: Sequence[str] = ()
    path: str = field(default="", compare=False)

    def sending(
        self, staged: Sequence[StagedFile], ends: Mapping[str, LogEnd] = MappingProxyType({})
    ) -> Manifest:
        """With what the tasks staged, in the tasks' order. ``ends``: by partition.

        Ids begin at the time, so no two manifests have the same ones: not even where the storage
        was set back to before the other, which else would have this one's rows dropped.
        """
        parts: dict[str, list[tuple[str, Run]]] = {}
        schemas: dict[str, ShownSchema] = {}
        inline = bytearray()
        for one in staged:
            begin = len(inline)
            inline += one.inline
            for partition, runs in one.runs.items():
                moved = [Run(run.offset + begin, run.size, run.ids) for run in runs]
                parts.setdefault(partition, []).extend(
                    (one.path, run) for run in (runs if one.path else moved)
                )
                schemas[partition] = one.schemas[partition]
        after = dict(self.following)
        partitions = []
        for partition, found in sorted(parts.items()):
            before = after.get(partition, 0) - 1
            first = max(before + 1, self.created * _IDS_A_MILLISECOND)
            ids = sum(run.ids for _, run in found)
            after[partition] = first + ids
            schema, end = schemas[partition], ends.get(partition, NO_LOG)
            partitions.append(PartitionEntries(partition, first, ids, before, schema, found, end))
        return replace(
            self,
            rows=sum(one.rows for one in staged),
            partitions=partitions,
            following=after,
            inline=bytes(inline),
            files=list(dict.fromkeys(one.path for one in staged if one.path)),
        )

    def as_sent(self) -> Manifest:
        """What is kept of it once everything is sent: that it was, and which ids come next."""
        return replace(self, partitions=(), files=(), inline=b"", encrypted=False, sent=True)

    def to_bytes(self) -> bytes:
        value = {
            "format": _FORMAT,
            "producer": self.producer,
            "version": self.version,
            "created": self.created,
            "rows": self.rows,
            "sent": self.sent,
            "encrypted": self.encrypted,
            "named": self.named,
            "files": list(self.files),
            "following": dict(self.following),
            "partitions": [
                {
                    "partition": one.partition,
                    "first": one.first,
                    "ids": one.ids,
                    "before": one.before,
                    "end": str(one.end.last),
                    "log": one.end.created_at,
                    "schema": _text(one.schema.message),
                    "schemaVersion": _text(one.schema.version),
                    "parts": [[path, run.offset, run.size, run.ids] for path, run in one.parts],
                }
                for one in self.partitions
            ],
        }
        text = json.dumps(value, separators=(",", ":")).encode()
        return len(text).to_bytes(4, "little") + text + self.inline

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> Manifest:
        """Return the manifest that lies at ``path``.

        Raises CorruptError for what is none, and for one that names other files, topics or
        producers than those of its own write: who may write below ``~sink/`` alone could have put
        it there, and it is carried out with the rights of those who run the write.
        """
        size = int.from_bytes(data[:4], "little")
        try:
            value = json.loads(data[4 : 4 + size])
            if value["format"] != _FORMAT:
                raise CorruptError(f"{path} is of a newer version of pulsar-lake")
            found = cls(
                str(value["producer"]),
                int(value["version"]),
                int(value["created"]),
                int(value["rows"]),
                [_partition(one) for one in value["partitions"]],
                {str(one): int(first) for one, first in value["following"].items()},
                bool(value["encrypted"]),
                bool(value["sent"]),
                bool(value["named"]),
                data[4 + size :],
                [str(one) for one in value["files"]],
                path,
            )
            foreign = _foreign(found)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptError(f"{path} is not the manifest of a write: {error}") from None
        if foreign is not None:
            raise CorruptError(
                f"{path} is not the manifest of a write: it names {foreign}, which is not its own",
                hint="did anybody else write it? See docs/security.md",
            )
        return found


def _foreign(manifest: Manifest) -> str | None:
    """Return the first file, partition or producer that is not of the manifest's own write."""
    _, app, *topic = posixpath.dirname(manifest.path).split("/")
    own = re.compile(re.escape(posixpath.dirname(manifest.path)) + r"/[^/]+\.entries")
    files = (*manifest.files, *(path for one in manifest.partitions for path, _ in one.parts))
    for path in files:
        if path and not own.fullmatch(path):
            return path
    for one in manifest.partitions:
        if topic and [component(Partition.parse(one.partition).topic.local_name)] != topic:
            return one.partition
    name = _PRODUCER.fullmatch(manifest.producer)
    return None if name and component(name[1]) == app else manifest.producer


def producer_name(app: str) -> str:
    """Return a name of producers of this write that nobody has used.

    A name that was used with other sequence ids would lose rows.
    """
    return f"pulsar-lake-{app}-{uuid.uuid4().hex[:8]}"


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _partition(value: Mapping[str, Any]) -> PartitionEntries:
    return PartitionEntries(
        str(value["partition"]),
        int(value["first"]),
        int(value["ids"]),
        int(value["before"]),
        ShownSchema(_bytes(value["schema"]), _bytes(value["schemaVersion"])),
        [(str(path), Run(*map(int, run))) for path, *run in value["parts"]],
        LogEnd(Position.parse(value["end"]), str(value["log"])),
    )
