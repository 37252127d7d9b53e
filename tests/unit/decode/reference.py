"""A slow decoder in plain Python: the oracle of the kernels. Shares no code with them."""

import io
import zlib
from typing import Any

import pyarrow as pa

from tests.unit.decode.entries import crc32c_slow

Fields = list[tuple[int, int, Any]]
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999
LIMIT = 512 << 20
_TEXTS = frozenset({1, 4, 5, 6, 13, 14, 15, 16, 18, 26})
KNOWN = frozenset(
    (number, 2 if number in _TEXTS else 0) for number in {*range(1, 31)} - {7, 10, 21}
)
KNOWN_SINGLE = frozenset((number, 2 if number in (1, 2, 7) else 0) for number in range(1, 11))
FREE, RATIO, REPEATED, MOST_MESSAGES = 32 << 20, 64, 256 << 20, 1 << 22


class MalformedError(Exception):
    """Bytes that are no message of this type."""


class NeedsOthersError(Exception):
    """A chunk or a transaction."""


def _varint(stream: io.BytesIO) -> int:
    value = 0
    for place in range(10):
        byte = stream.read(1)
        if not byte:
            raise MalformedError
        value |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            return value % 2**64
    raise MalformedError


def _exactly(stream: io.BytesIO, size: int) -> bytes:
    data = stream.read(size) if size < 2**62 else b""
    if len(data) != size:
        raise MalformedError
    return data


def _fields(data: bytes) -> Fields:
    stream = io.BytesIO(data)
    found: Fields = []
    while stream.tell() < len(data):
        tag = _varint(stream)
        number, wire = tag >> 3, tag & 7
        if number == 0 or tag >= 2**32:
            raise MalformedError
        if wire == 0:
            found.append((number, wire, _varint(stream)))
        elif wire == 2:
            found.append((number, wire, _exactly(stream, _varint(stream))))
        elif wire in (1, 5):
            found.append((number, wire, _exactly(stream, 8 if wire == 1 else 4)))
        else:
            raise MalformedError
    return found


def _other(data: bytes, known: frozenset[tuple[int, int]]) -> bytes | None:
    """The fields of a message that are not ``known`` (number, wire type), as they are."""
    stream = io.BytesIO(data)
    found = b""
    while (begin := stream.tell()) < len(data):
        tag = _varint(stream)
        match tag & 7:
            case 0:
                _varint(stream)
            case 2:
                stream.seek(_varint(stream), io.SEEK_CUR)
            case wire:
                stream.seek(8 if wire == 1 else 4, io.SEEK_CUR)
        if (tag >> 3, tag & 7) not in known:
            found += data[begin : stream.tell()]
    return found or None


def _last(fields: Fields, number: int, wire: int) -> Any:
    values = [value for n, w, value in fields if (n, w) == (number, wire)]
    return values[-1] if values else None


def _signed(value: int, bits: int = 64) -> int:
    value %= 2**bits
    return value - 2**bits if value >= 2 ** (bits - 1) else value


def _text(raw: bytes | None, problem: str, problems: list[str]) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        problems.append(problem)
        return None


def _time(raw: int | None, problem: str, problems: list[str]) -> int | None:
    if raw is None:
        return None
    if not FIRST <= _signed(raw) <= LAST:
        problems.append(problem)
        return None
    return _signed(raw) * 1000


def _properties(fields: Fields, number: int, problems: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    bad = False
    for n, wire, value in fields:
        if (n, wire) != (number, 2):
            continue
        pair = _fields(value)
        key, text = _last(pair, 1, 2), _last(pair, 2, 2)
        if key is None or text is None:
            raise MalformedError
        try:
            found[key.decode()] = text.decode()
        except UnicodeDecodeError:
            bad = True
    if bad:
        problems.append("a property is not UTF-8")
    return found


def _lz4(data: bytes, size: int) -> bytes:
    out = bytearray()
    at = 0

    def count(first: int) -> int:
        nonlocal at
        total = first
        if first == 15:
            while True:
                at += 1
                total += data[at - 1]
                if data[at - 1] != 255:
                    break
        return total

    while True:
        token = data[at]
        at += 1
        literals = count(token >> 4)
        if literals > len(data) - at:
            raise MalformedError
        out += data[at : at + literals]
        at += literals
        if at == len(data):
            return bytes(out)
        back = data[at] | data[at + 1] << 8
        at += 2
        repeat = count(token & 15) + 4
        if not 0 < back <= len(out) or len(out) + repeat > size:
            raise MalformedError
        for _ in range(repeat):
            out.append(out[-back])


def _inflate(kind: int, data: bytes, size: int) -> bytes:
    if size == 0 and not data:
        return b""
    try:
        if kind == 1:
            out = _lz4(data, size)
        elif kind == 2:
            stream = zlib.decompressobj()
            out = stream.decompress(data, size + 1)
            if stream.unconsumed_tail:
                raise MalformedError
        elif kind == 3:
            out = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(size + 1)
        else:
            stated = _varint(io.BytesIO(data[:5]))
            if stated != size or size > 22 * len(data):
                raise MalformedError
            out = pa.Codec("snappy").decompress(data, size, asbytes=True) if size else b""
    except (IndexError, OSError, ValueError, zlib.error) as problem:
        raise MalformedError from problem
    if len(out) != size:
        raise MalformedError
    return bytes(out)


def _bare(ids: dict[str, Any]) -> dict[str, Any]:
    names = (
        "__key __keyBase64 __orderingKey __messageProperties __publishTime __eventTime "
        "__brokerPublishTime __deliverAt __index __producerName __replicatedFrom __sequenceId "
        "__schemaVersion __encryptionContext __otherMetadata __firstChunkLedgerId "
        "__firstChunkEntryId payload"
    )
    empty = dict.fromkeys(names.split())
    return {
        **ids,
        "__batchIndex": -1,
        **empty,
        "__tombstone": False,
        "schema": -1,
        "kind": "message",
    }


def _split(payload: bytes, count: int) -> list[tuple[Fields, bytes, bytes]]:
    stream = io.BytesIO(payload)
    found = []
    for _ in range(count):
        size = _exactly(stream, 4)
        raw = _exactly(stream, int.from_bytes(size, "big"))
        fields = _fields(raw)
        stated = _last(fields, 3, 0)
        if stated is None or _signed(stated, 32) < 0:
            raise MalformedError
        _properties(fields, 1, [])
        data = _exactly(stream, _signed(stated, 32))
        found.append((fields, data, size + raw + data))
    return found


def _header(raw: bytes, row: dict[str, Any], problems: list[str]) -> tuple[bytes, bytes]:
    """(MessageMetadata, payload) of an entry; LookupError with the reason."""
    rest = raw
    if not raw:
        raise LookupError("empty entry")
    if rest[:2] == b"\x0e\x02":
        size = int.from_bytes(rest[2:6], "big")
        if len(rest) < 6 or size > len(rest) - 6:
            raise LookupError("entry is cut off or malformed")
        try:
            fields = _fields(rest[6 : 6 + size])
        except MalformedError:
            raise LookupError("broker entry metadata cannot be parsed") from None
        row["__brokerPublishTime"] = _time(
            _last(fields, 1, 0), "broker publish time out of range", problems
        )
        index = _last(fields, 2, 0)
        row["__index"] = None if index is None else _signed(index)
        rest = rest[6 + size :]
    if rest[:2] == b"\x0e\x01":
        if len(rest) < 6:
            raise LookupError("entry is cut off or malformed")
        if int.from_bytes(rest[2:6], "big") != crc32c_slow(rest[6:]):
            raise LookupError("checksum mismatch")
        rest = rest[6:]
    size = int.from_bytes(rest[:4], "big")
    if len(rest) < 4 or size > len(rest) - 4:
        raise LookupError("entry is cut off or malformed")
    return rest[4 : 4 + size], rest[4 + size :]


def _key(
    row: dict[str, Any], raw: bytes | None, base64: Any, null: Any, problems: list[str]
) -> None:
    row["__key"] = None if null else _text(raw, "key is not UTF-8", problems)
    row["__keyBase64"] = None if row["__key"] is None else bool(base64)


def reference(
    raw: bytes, entry_id: int, ledger_id: int, partition: int, damaged: str | None = None
) -> list[dict[str, Any]]:
    """The rows of one entry, as EntryDecoder has to give them. Raises NeedsOthersError."""
    row = _bare({"__partition": partition, "__ledgerId": ledger_id, "__entryId": entry_id})
    problems: list[str] = []
    if damaged is not None:
        return [{**row, "rescued": (raw, f"damaged entry: {damaged}"), "kind": "damaged"}]
    try:
        data, payload = _header(raw, row, problems)
        try:
            fields = _fields(data)
            late: list[str] = []
            properties = _properties(fields, 4, late)
        except MalformedError:
            raise LookupError("message metadata cannot be parsed") from None
        if _last(fields, 20, 0) is not None:
            return []
        required = (_last(fields, 1, 2), _last(fields, 2, 0), _last(fields, 3, 0))
        if None in required:
            raise LookupError("message metadata lacks producer_name, sequence_id or publish_time")
    except LookupError as problem:
        text = "; ".join([str(problem), *problems])
        return [{**row, "rescued": (raw, text), "kind": "undecodable"}]
    if any(_last(fields, number, 0) is not None for number in (22, 23)):
        raise NeedsOthersError
    chunks = _signed(_last(fields, 27, 0) or 0, 32)
    chunk = _last(fields, 29, 0)

    batched = _last(fields, 11, 0) is not None
    shared: list[str] = []
    own: list[str] = []
    row["__publishTime"] = _time(required[2], "publish time out of range", shared)
    shared += problems
    row["__deliverAt"] = _time(_last(fields, 19, 0), "deliver time out of range", shared)
    row["__eventTime"] = _time(_last(fields, 12, 0) or None, "event time out of range", own)
    row["__producerName"] = _text(required[0], "producer name is not UTF-8", shared)
    row["__replicatedFrom"] = _text(_last(fields, 5, 2), "replicated_from is not UTF-8", shared)
    version = _last(fields, 16, 2)
    if version:
        number = int.from_bytes(version, "big")
        if len(version) > 8 or number >= 2**63:
            shared.append("schema version out of range")
        else:
            row["__schemaVersion"] = row["schema"] = number
    row["__sequenceId"] = _signed(required[1])
    other = _other(data, KNOWN)
    row["__otherMetadata"] = {"entry": other, "message": None} if other else None
    event_problem = bool(own)

    whole = dict(row)
    _key(whole, _last(fields, 6, 2), _last(fields, 17, 0), _last(fields, 30, 0), own)
    whole["__orderingKey"] = _last(fields, 18, 2)
    whole["__messageProperties"] = properties
    own += late

    def rescue(reason: str, raw_bytes: bytes, kind: str = "undecodable") -> list[dict[str, Any]]:
        text = "; ".join([reason, *shared, *own])
        return [{**whole, "rescued": (raw_bytes, text), "kind": kind}]

    if _last(fields, 13, 2) is not None:
        whole["__encryptionContext"] = {}  # some; what is in it has a test of its own
        return rescue("encrypted", payload, "encrypted")
    kind = _last(fields, 8, 0) or 0
    if kind > 4:
        return rescue("unknown compression", raw)
    size = (_last(fields, 9, 0) or 0) % 2**32
    stored = payload
    total = _signed(_last(fields, 28, 0) or 0, 32)
    if (kind and size > LIMIT) or (chunks > 1 and total > LIMIT):
        return rescue("uncompressed size above 512 MiB", raw)
    if chunks > 1:  # the others are not there
        first = chunk is not None and _signed(chunk, 32) == 0
        whole["__firstChunkLedgerId"], whole["__firstChunkEntryId"] = ledger_id, entry_id
        return [] if first else rescue("chunked message with chunks missing", raw, "unmatched")
    stated = _signed(_last(fields, 11, 0) or 0, 32)
    if batched and not 0 < stated <= (size if kind else len(payload)) // 6:
        return rescue("batch states an impossible number of messages", raw)
    if kind and size > max(FREE, RATIO * len(payload)):
        return rescue(
            "uncompressed size above pulsar.expanded_bytes, and 64 times what is stored", raw
        )
    if batched and stated > MOST_MESSAGES:
        return rescue("batch of more messages than pulsar.expanded_bytes divided by 8", raw)
    if batched and stated * len(data) > REPEATED:
        return rescue(
            "metadata of a batch repeated in its rows above 8 times pulsar.expanded_bytes", raw
        )
    if kind:
        try:
            payload = _inflate(kind, payload, size)
        except MalformedError:
            return rescue("payload cannot be decompressed to its stated size", raw)
    if not batched:
        if not _last(fields, 25, 0):
            whole["payload"] = payload
        whole["__tombstone"] = not whole["payload"]
        both = shared + own
        return [{**whole, "rescued": (raw, "; ".join(both)) if both else None}]

    count = _signed(_last(fields, 11, 0), 32)
    try:
        messages = _split(payload, count)
    except MalformedError:
        return rescue("batch cannot be split into its messages", raw)
    header = raw[: len(raw) - len(stored)]
    found = []
    for place, (message, body, frame) in enumerate(messages):
        if _last(message, 4, 0):
            continue
        mine: list[str] = ["event time out of range"] if event_problem else []
        one = {**row, "__batchIndex": place}
        if row["__index"] is not None:
            one["__index"] = _signed(row["__index"] - (count - 1) + place)
        event = _last(message, 5, 0)
        if event is not None:
            mine = []
            one["__eventTime"] = _time(event or None, "event time out of range", mine)
        null_key = _last(message, 10, 0)
        null_key = _last(fields, 30, 0) if null_key is None else null_key
        _key(one, _last(message, 2, 2), _last(message, 6, 0), null_key, mine)
        one["__orderingKey"] = _last(message, 7, 2)
        one["__messageProperties"] = _properties(message, 1, mine)
        sequence = _last(message, 8, 0)
        sequence = row["__sequenceId"] if sequence is None else sequence
        one["__sequenceId"] = _signed(sequence)
        null_value = _last(message, 9, 0)
        null_value = _last(fields, 25, 0) if null_value is None else null_value
        size = int.from_bytes(frame[:4], "big")
        mine_other = _other(frame[4 : 4 + size], KNOWN_SINGLE)
        if other or mine_other:
            one["__otherMetadata"] = {"entry": other, "message": mine_other}
        one["payload"] = None if null_value else body
        one["__tombstone"] = not one["payload"]
        both = shared + mine
        found.append({**one, "rescued": (header + frame, "; ".join(both)) if both else None})
    return found
