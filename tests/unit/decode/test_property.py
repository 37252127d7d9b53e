"""The kernels against the slow decoder: on entries as producers make them, and on broken ones."""

import ctypes
import mmap
import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reader.decode import EntryDecoder
from reader.decode.decoder import HEADER_COLUMNS
from reader.errors import PulsarLakeError
from reader.model import EntryBlock
from tests.support.examples import examples
from tests.unit.decode.entries import (
    PARTITION,
    broker,
    decode,
    entry,
    metadata,
    proto,
    rows_of,
    single,
)
from tests.unit.decode.reference import NeedsOthersError, reference

ROUNDS = int(os.environ.get("PULSAR_LAKE_FUZZ_ROUNDS", "4000"))

# Mostly what producers write, now and then what they should not.
_text = st.one_of(st.text(max_size=12), st.sampled_from(["", "a", "ключ", "b" * 40]))
_bytes = st.one_of(_text.map(str.encode), st.binary(max_size=12))
_number = st.one_of(
    st.integers(0, 2**31),
    st.sampled_from([0, 1, 1_700_000_000_123, 253_402_300_799_999, 253_402_300_800_000]),
    st.integers(0, 2**64 - 1),
)
_pairs = st.lists(st.tuples(st.one_of(st.sampled_from([b"a", b"b"]), _bytes), _bytes), max_size=4)
_flag = st.booleans()


def _optional(**strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any subset of the keys, in any order: the order of fields is the producer's choice."""
    return st.fixed_dictionaries({}, optional=strategies).flatmap(
        lambda values: st.permutations(list(values.items())).map(dict)
    )


_single_fields = _optional(
    properties=_pairs,
    partition_key=_bytes,
    partition_key_b64_encoded=_flag,
    null_partition_key=_flag,
    ordering_key=st.binary(max_size=8),
    event_time=_number,
    sequence_id=_number,
    null_value=_flag,
    compacted_out=_flag,
    unknown=_number,
)
_single = st.tuples(
    st.one_of(st.binary(max_size=40), st.binary(min_size=1, max_size=4).map(lambda b: b * 50)),
    _single_fields,
    st.just({}) | _single_fields,
)
_metadata = _optional(
    producer_name=_bytes,
    sequence_id=_number,
    publish_time=_number,
    properties=_pairs,
    replicated_from=_bytes,
    replicate_to=_text,
    partition_key=_bytes,
    partition_key_b64_encoded=_flag,
    null_partition_key=_flag,
    ordering_key=st.binary(max_size=8),
    event_time=_number,
    deliver_at_time=_number,
    schema_version=st.one_of(st.integers(0, 9).map(lambda n: n.to_bytes(8, "big")), _bytes),
    null_value=_flag,
    num_chunks_from_msg=st.integers(0, 1),
    uuid=_text,
    schema_id=_bytes,
    entry_hash_min=_number,
    unknown=_bytes,
)


@st.composite
def entries(draw: st.DrawFn, *, compacted: bool = True) -> bytes:
    """``compacted``: also batches of which compaction took messages out."""
    values = draw(_metadata)
    payload = draw(st.binary(max_size=60))
    if draw(st.booleans()):
        messages = draw(st.lists(_single, min_size=1, max_size=6))
        for _, *both in messages if not compacted else ():
            for fields in both:
                fields.pop("compacted_out", None)
        payload = b"".join(single(body, again, **fields) for body, fields, again in messages)
        values["num_messages_in_batch"] = len(messages)
    head = b""
    if draw(st.booleans()):
        head = broker(draw(st.none() | _number), draw(st.none() | _number))
    for name in draw(st.sets(st.sampled_from(["marker_type", "encryption_keys"]), max_size=1)):
        if draw(st.integers(0, 9)) == 0:
            values[name] = 10 if name == "marker_type" else b"\x0a\x01k"
    return entry(
        payload,
        head=head,
        checksum=draw(st.booleans()),
        compression=draw(st.integers(0, 4)),
        again=draw(st.just({}) | _metadata),
        **values,
    )


def _expected(raws: Sequence[bytes]) -> list[dict[str, Any]]:
    return [row for place, raw in enumerate(raws) for row in reference(raw, 10 + place, 42, 3)]


def _agree(raws: Sequence[bytes]) -> None:
    found, wanted = decode(raws), _expected(raws)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert _comparable(one) == _comparable(other)


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    """The order of reasons says nothing, and an encryption context is only said to be there."""
    row = {**row, "__encryptionContext": row["__encryptionContext"] is not None}
    rescued = row["rescued"]
    if rescued is not None:
        row = {**row, "rescued": (rescued[0], sorted(rescued[1].split("; ")))}
    return row


@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(entries(), min_size=1, max_size=4))
def test_agrees_with_the_reference(raws: list[bytes]) -> None:
    _agree(raws)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(entries(), min_size=1, max_size=4),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.integers(-(2**63), 2**63 - 1),
)
def test_publish_range_is_a_filter(raws: list[bytes], low: int | None, high: int | None) -> None:
    """As if the filter ran over all rows, but that rows without a publish time stay."""
    kept = [
        row
        for row in decode(raws)
        if row["__publishTime"] is None
        or (
            (low is None or low <= row["__publishTime"])
            and (high is None or row["__publishTime"] <= high)
        )
    ]
    assert decode(raws, publish_range=(low, high)) == kept


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(entries(), min_size=1, max_size=3), st.data())
def test_columns_do_not_depend_on_each_other(raws: list[bytes], data: st.DataObject) -> None:
    everything = decode(raws)
    names = (
        data.draw(st.sets(st.sampled_from([n for n in everything[0] if n[:2] == "__"])))
        if everything
        else set()
    )
    names |= {"__batchIndex"}  # of headers alone, raw bytes are not given
    keep = {*names, "schema", "rescued", "kind"}
    assert decode(raws, columns=names, payload=False) == [
        {name: row[name] for name in row if name in keep} for row in everything
    ]


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(entries(compacted=False), min_size=1, max_size=4),
    st.none() | st.integers(-(2**63), 2**63 - 1),
)
def test_headers_alone_say_the_same(raws: list[bytes], low: int | None) -> None:
    options: dict[str, Any] = {"payload": False, "publish_range": (low, None)}
    names = [*HEADER_COLUMNS, "schema"]
    rows = decode(raws, **options)
    found = decode(raws, columns=HEADER_COLUMNS, **options)
    assert [{name: row[name] for name in names} for row in found] == [
        {name: row[name] for name in names} for row in rows
    ]


def _mutate(raw: bytes, draw: random.Random) -> bytes:
    out = bytearray(raw)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at = draw.randrange(len(out) + 1)
        match draw.randrange(7):
            case 0 if out:
                out[at % len(out)] ^= 1 << draw.randrange(8)
            case 1 if out:
                out[at % len(out)] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
            case 2:
                del out[at:]
            case 3:
                del out[at : at + draw.randrange(1, 9)]
            case 4:
                out[at:at] = draw.randbytes(draw.randrange(1, 9))
            case 5:
                out[at:at] = b"\xff" * draw.randrange(1, 12)
            case _:
                out[at : at + 4] = draw.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4)))
    return bytes(out)


def _seeds() -> list[bytes]:
    """A few of everything; mostly without a checksum, which would catch what comes after."""
    properties = [(b"a", b"1"), (b"b", "ü".encode()), (b"a", b"2")]
    batch = b"".join(
        single(
            b"payload %d " % n * 5,
            properties=properties,
            partition_key="key",
            ordering_key=b"o",
            event_time=1_700_000_000_000 + n,
            sequence_id=n,
        )
        for n in range(4)
    )
    full: dict[str, Any] = {
        "properties": properties,
        "partition_key": "key",
        "partition_key_b64_encoded": True,
        "ordering_key": b"o",
        "event_time": 5,
        "deliver_at_time": 6,
        "schema_version": (3).to_bytes(8, "big"),
        "replicated_from": "west",
        "null_value": False,
    }
    head = broker(1_700_000_000_200, 99)
    found = [b"", bytes(20), entry(b"x"), entry(b"x", head=head)]
    for kind in range(5):
        found.append(entry(b"x" * 100, checksum=False, compression=kind, **full))
        found.append(
            entry(
                batch, head=head, checksum=False, compression=kind, num_messages_in_batch=4, **full
            )
        )
    found.append(entry(b"", checksum=False, marker_type=21))
    found.append(entry(b"?", checksum=False, encryption_keys=proto([(1, "k"), (2, b"v")])))
    found.append(entry(batch, checksum=False, num_messages_in_batch=4))
    found.append(entry(raw_metadata=metadata() + b"\x1b\x1c", checksum=False))  # a group
    return found


@pytest.fixture(scope="module")
def guard() -> npt.NDArray[np.uint8]:
    """Memory that ends where a page begins that must not be touched: reading on is a crash."""
    size = 16 * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    array = np.frombuffer(memory, np.uint8)[:size]
    libc = ctypes.CDLL(None, use_errno=True)
    address = ctypes.c_void_p(array.ctypes.data + size)
    assert libc.mprotect(address, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    return array


def _at_the_end(array: npt.NDArray[np.uint8], raw: bytes) -> EntryBlock:
    array[len(array) - len(raw) :] = np.frombuffer(raw, np.uint8)
    place = np.array([len(array) - len(raw)], np.int64)
    return EntryBlock(42, np.array([10], np.int64), place, len(array) - place, array)


@pytest.mark.parametrize("seed", range(4))
def test_mutations_agree_with_the_reference(seed: int, guard: npt.NDArray[np.uint8]) -> None:
    """Whatever the bytes: no crash, no other error, exactly the rows of the reference."""
    draw = random.Random(seed)
    seeds = _seeds()
    decoder = EntryDecoder(PARTITION)
    for _ in range(ROUNDS // 4):
        raw = _mutate(draw.choice(seeds), draw)
        try:
            wanted = reference(raw, 10, 42, 3)
        except NeedsOthersError:
            with pytest.raises(PulsarLakeError):
                decoder.decode(_at_the_end(guard, raw))
            continue
        found = [row for part in decoder.decode(_at_the_end(guard, raw)) for row in rows_of(part)]
        assert [_comparable(row) for row in found] == [_comparable(row) for row in wanted], raw
