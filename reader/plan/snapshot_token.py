"""A snapshot's hot half as one token, safe in an identifier.

Self-contained (positions, payload columns, Delta version), so that a DataFrame outlives the
planner that made it; it holds no secret, because DESCRIBE and EXPLAIN show it. What is immutable
(schema texts) or may only have become fresher (ensembles of a ledger) is asked for again.

Anybody can type one: it says where rows lie and permits nothing, it is not looked at before the
broker has permitted the topic in whose name it stands, and what it can cost is bounded.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from reader.errors import ConfigurationError, NotFoundError, UnsupportedError
from reader.model import Partition, Position, Segment, Tier, Topic
from reader.model.reasons import Reason, TierReason
from reader.payload import remember
from reader.plan.completeness import CompactedPart
from reader.plan.snapshot import Ciphertext, PlanningAdmin, Snapshot, list_ledgers
from reader.pulsar import CompactedLedger, LedgerInfo, PartitionLedgers
from reader.table import decode_schemas, encode_schemas

_MOST_BYTES = 4 << 20
"""Of a token that is unpacked: some 200,000 hot ledgers. What reading one costs is linear in this:
400,000 of the shortest take two seconds and 130 MiB."""
_MOST_NUMBER = (1 << 63) - 1

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
    """Letters, digits, ``_`` and ``.`` only; about 5 bytes a hot ledger.

    Raises UnsupportedError for more than ``from_token`` would take.
    """
    choices: dict[tuple[Tier, TierReason], int] = {}
    parts: dict[int, list[list[Any]]] = {}
    lookback: dict[int, list[int]] = {}
    created = {one.partition.index: one.created_at for one in snapshot.hot}
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
        "created": created,
        "lookback": lookback,
        "ciphertext": _ciphertext(snapshot),
        "compacted": {one.partition.index: _part_numbers(one) for one in snapshot.compacted},
        "schemas": encode_schemas(snapshot.forgotten),
    }
    plain = json.dumps(value, separators=(",", ":")).encode()
    if len(plain) > _MOST_BYTES:
        raise UnsupportedError(
            f"topic {snapshot.topic} has too many ledgers that are not offloaded: "
            f"{len(snapshot.hot)}",
            hint=f"run: pulsar-lake offload --once {snapshot.topic}",
        )
    packed = zlib.compress(plain, 9)
    return base64.b64encode(packed, b"_.").decode().rstrip("=")


def from_token(admin: PlanningAdmin, topic: Topic, token: str) -> Snapshot:
    """The hot half of the topic's snapshot again.

    Ledgers that Pulsar no longer lists keep their place, without metadata: reading them finds
    them in the table. Raises ConfigurationError for anything that is no token of this topic, and
    where the broker does not let us consume it; NotFoundError where a ledger is another one by now,
    in a cluster that was wiped or restored.
    """
    admin.require_consume(topic)  # whoever made the token, and before it costs anything
    try:
        content = _content(token)
    except _NO_TOKEN as error:
        raise ConfigurationError(
            "not the token of a snapshot", hint="query the topic itself"
        ) from error
    if content.topic != topic:
        raise ConfigurationError(
            f"not the token of a snapshot of {topic}", hint="query the topic itself"
        )
    wanted = {one.partition for one in content.hot}
    wanted |= {one.partition for one in content.compacted}
    try:
        # Of those that there are: each takes requests.
        there = [one for one in admin.partitions(topic) if one in wanted] if wanted else []
        # What transactions hide was decided with the token.
        listed = list_ledgers(admin, there, transactions=False)
        schemas = admin.schemas(topic)
    except NotFoundError:  # the topic was deleted since
        listed, schemas = {}, ()
    known = {
        (partition, one.ledger_id): one
        for partition, listing in listed.items()
        for one in listing.ledgers
    }
    opened = {partition: listing.opened_times() for partition, listing in listed.items()}
    hot: list[Segment] = []
    for one in content.hot:
        info = known.get((one.partition, one.ledger_id))
        if info is not None:
            one = _as_listed(one, listed[one.partition], info)
            one = replace(one, opened_at=opened[one.partition][one.ledger_id])
        hot.append(one)
    compacted = tuple(_as_shown(one, listed.get(one.partition)) for one in content.compacted)
    return replace(
        content, schemas=remember(content.forgotten, schemas), hot=tuple(hot), compacted=compacted
    )


def token_size(token: str) -> int:
    """Bytes of a token that ``from_token`` took: its snapshot's memory is in proportion to them."""
    return max(len(token), len(_unpacked(token)))


def _as_listed(one: Segment, listing: PartitionLedgers, info: LedgerInfo) -> Segment:
    """With what Pulsar says now. Raises NotFoundError for another ledger of the same id."""
    made_again = one.created_at and listing.created_at not in ("", one.created_at)
    if made_again or listing.last_entry(info) < one.last_entry:
        raise NotFoundError(
            f"ledger {one.ledger_id} of {one.partition} is another one than when the query was "
            "planned",
            hint="the topic was made again, or the cluster restored: make the query anew",
        )
    return replace(
        one,
        bytes=info.bytes or listing.open_bytes,
        metadata=info.stored,
        closed_at=info.closed_at,
        identity=listing.identity(info),
    )


def _as_shown(part: CompactedPart, listing: PartitionLedgers | None) -> CompactedPart:
    """Return a part with the compacted ledger that Pulsar has now, if it serves the snapshot."""
    found = listing.compacted if listing is not None else None
    return replace(part, ledger=found) if found is not None and part.serves(found) else part


def _content(token: str) -> Snapshot:
    """What the token itself says. Raises errors of many kinds for one that is not in its form."""
    value = json.loads(_unpacked(token))
    topic = Topic.parse(value["topic"])
    choices = dict(enumerate(_choice(*one) for one in value["choices"]))
    hot: list[Segment] = []
    for index, found in value["parts"].items():
        partition = Partition(topic, _whole(int(index), -1))
        lookback, created_at = _lookback(value["lookback"], index), value["created"].get(index, "")
        if not isinstance(created_at, str):
            raise TypeError(type(created_at))
        ledger_id = 0
        for number, (step, last_entry, is_open, choice) in enumerate(found):
            ledger_id = _whole(ledger_id + _whole(step, 1 if number else 0))  # they ascend
            tier, reason = choices[choice]
            hot.append(
                Segment(
                    partition=partition,
                    ledger_id=ledger_id,
                    state="open" if is_open else "sealed",
                    tier=tier,
                    reason=reason,
                    last_entry=_whole(last_entry),
                    entries=last_entry + 1,
                    bytes=0,
                    lookback=lookback,
                    created_at=created_at,
                )
            )
    version, sealed = value["version"], [_whole(one, -1) for one in value["ciphertext"]]
    if len(set(sealed[1:])) < len(sealed[1:]):
        raise ValueError("a partition twice")
    fields = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value["fields"])))
    _decode_names(fields)
    return Snapshot(
        topic=topic,
        uri="",
        version=None if version is None else _whole(version),
        fields=fields,
        cold_columns=pa.schema([]),
        schemas=(),
        forgotten=decode_schemas(value["schemas"]),
        hot=tuple(hot),
        ciphertext=Ciphertext(sealed[0], tuple(Partition(topic, one) for one in sealed[1:]))
        if sealed
        else None,
        compacted=tuple(
            _part(Partition(topic, _whole(int(index), -1)), *numbers)
            for index, numbers in value["compacted"].items()
        ),
    )


def _part_numbers(part: CompactedPart) -> list[int]:
    end = part.end
    return [part.first, part.before, part.ledger.ledger_id, end.ledger, end.entry]


def _part(
    partition: Partition, first: int, before: int, ledger_id: int, *end: int
) -> CompactedPart:
    """A part whose compacted ledger is to be asked for: the token permits none."""
    upto = Position(*(_whole(one, -1) for one in end))
    ledger = CompactedLedger(_whole(ledger_id), 0, None, upto)
    return CompactedPart(partition, _whole(first), _whole(before), ledger, upto)


def _decode_names(fields: Iterable[pa.Field]) -> None:
    """Raises UnicodeDecodeError now: pyarrow decodes a field's name each time it is asked for."""
    for one in fields:
        one.name  # noqa: B018 - decodes it
        _decode_names(one.type.field(index) for index in range(one.type.num_fields))


def _unpacked(token: str) -> bytes:
    if len(token) > 2 * _MOST_BYTES:
        raise ValueError("too long")
    packed = base64.b64decode(token + "=" * (-len(token) % 4), b"_.", validate=True)
    inflating = zlib.decompressobj()
    plain = inflating.decompress(packed, _MOST_BYTES + 1)
    if len(plain) > _MOST_BYTES or not inflating.eof:
        raise ValueError("too long, or not whole")
    return plain


def _whole(number: object, least: int = 0) -> int:
    if type(number) is not int or not least <= number <= _MOST_NUMBER:
        raise ValueError("no such number")
    return number


def _lookback(found: Mapping[str, Any], index: str) -> Position | None:
    if not found.get(index):
        return None
    ledger, entry = found[index]
    return Position(_whole(ledger, -1), _whole(entry, -1))


def _choice(tier: str, kind: str, detail: int | str | None) -> tuple[Tier, TierReason]:
    if not isinstance(detail, int | str | None):
        raise TypeError(type(detail))
    return Tier(tier), TierReason(Reason(kind), detail)


def _ciphertext(snapshot: Snapshot) -> list[int]:
    """The table's version and the partitions; [] for none."""
    found = snapshot.ciphertext
    return [found.version, *(one.index for one in found.partitions)] if found else []
