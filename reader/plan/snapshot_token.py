"""A snapshot's hot half as one token, safe in an identifier.

Self-contained (positions, payload columns, Delta version), so that a DataFrame outlives the
planner that made it; it holds no secret, because DESCRIBE and EXPLAIN show it. What is immutable
(schema texts) or may only have become fresher (ensembles of a ledger) is asked for again.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, Position, Segment, Tier, Topic
from reader.model.reasons import Reason, TierReason
from reader.plan.snapshot import Ciphertext, PlanningAdmin, Snapshot, list_ledgers

__all__ = ["from_token", "to_token"]

# What the decoders of its parts raise for anything else.
_NO_TOKEN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OSError,
    RecursionError,
    pa.ArrowException,
    zlib.error,
)


def to_token(snapshot: Snapshot) -> str:
    """Letters, digits, ``_`` and ``.`` only; about 5 bytes a hot ledger."""
    choices: dict[tuple[Tier, TierReason], int] = {}
    parts: dict[int, list[list[Any]]] = {}
    lookback: dict[int, list[int]] = {}
    before: dict[int, int] = {}
    for one in snapshot.hot:
        index = one.partition.index
        parts.setdefault(index, []).append(
            [
                one.ledger_id - before.get(index, 0),  # small numbers compress
                one.last_entry,
                int(one.state == "open"),
                choices.setdefault((one.tier, one.reason), len(choices)),
            ]
        )
        before[index] = one.ledger_id
        if one.lookback is not None:
            lookback[index] = [one.lookback.ledger, one.lookback.entry]
    value = {
        "topic": snapshot.topic.local_name,
        "version": snapshot.version,
        "fields": base64.b64encode(snapshot.fields.serialize().to_pybytes()).decode(),
        "choices": [[tier, why.kind.value, why.detail] for tier, why in choices],
        "parts": parts,
        "lookback": lookback,
        "ciphertext": _ciphertext(snapshot),
    }
    packed = zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 9)
    return base64.b64encode(packed, b"_.").decode().rstrip("=")


def from_token(admin: PlanningAdmin, token: str) -> Snapshot:
    """The snapshot's hot half again.

    Ledgers that Pulsar no longer lists keep their place, without metadata: reading them finds
    them in the table. Raises ConfigurationError for anything that is no token.
    """
    try:
        content = _content(token)
    except _NO_TOKEN as error:
        raise ConfigurationError(
            "not the token of a snapshot", hint="query the topic itself"
        ) from error
    topic = content.topic
    admin.require_consume(topic)  # whoever made the token
    partitions = list(dict.fromkeys(one.partition for one in content.hot))
    try:
        listed = list_ledgers(admin, partitions)
        schemas = admin.schemas(topic)
    except NotFoundError:  # the topic was deleted since
        listed, schemas = {}, ()
    known = {
        (partition, one.ledger_id): one
        for partition, listing in listed.items()
        for one in listing.ledgers
    }
    hot: list[Segment] = []
    for one in content.hot:
        info = known.get((one.partition, one.ledger_id))
        if info is not None:
            one = replace(
                one,
                bytes=info.bytes or listed[one.partition].open_bytes,
                metadata=info.metadata,
                closed_at=info.closed_at,
            )
        hot.append(one)
    return replace(content, schemas=schemas, hot=tuple(hot))


def _content(token: str) -> Snapshot:
    """What the token itself says. Raises errors of many kinds for one that is not in its form."""
    packed = base64.b64decode(token + "=" * (-len(token) % 4), b"_.", validate=True)
    value = json.loads(zlib.decompress(packed))
    topic = Topic.parse(value["topic"])
    choices = dict(enumerate(_choice(*one) for one in value["choices"]))
    hot: list[Segment] = []
    for index, found in value["parts"].items():
        lookback = value["lookback"].get(index)
        ledger_id = 0
        for step, last_entry, is_open, choice in found:
            ledger_id += step
            tier, reason = choices[choice]
            hot.append(
                Segment(
                    partition=Partition(topic, int(index)),
                    ledger_id=ledger_id,
                    state="open" if is_open else "sealed",
                    tier=tier,
                    reason=reason,
                    last_entry=last_entry,
                    entries=last_entry + 1,
                    bytes=0,
                    lookback=Position(*lookback) if lookback else None,
                )
            )
    version, sealed = value["version"], list(map(_whole, value["ciphertext"]))
    fields = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value["fields"])))
    _decode_names(fields)
    return Snapshot(
        topic=topic,
        uri="",
        version=None if version is None else _whole(version),
        fields=fields,
        cold_columns=pa.schema([]),
        schemas=(),
        hot=tuple(hot),
        ciphertext=Ciphertext(sealed[0], tuple(Partition(topic, one) for one in sealed[1:]))
        if sealed
        else None,
    )


def _decode_names(fields: Iterable[pa.Field]) -> None:
    """Raises UnicodeDecodeError now: pyarrow decodes a field's name each time it is asked for."""
    for one in fields:
        one.name  # noqa: B018 - decodes it
        _decode_names(one.type.field(index) for index in range(one.type.num_fields))


def _whole(number: object) -> int:
    if type(number) is not int or number < -1:
        raise ValueError(number)
    return number


def _choice(tier: str, kind: str, detail: int | str | None) -> tuple[Tier, TierReason]:
    return Tier(tier), TierReason(Reason(kind), detail)


def _ciphertext(snapshot: Snapshot) -> list[int]:
    """The table's version and the partitions; [] for none."""
    found = snapshot.ciphertext
    return [found.version, *(one.index for one in found.partitions)] if found else []
