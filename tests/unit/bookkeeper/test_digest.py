import hashlib
import hmac
import zlib

import numpy as np
import pytest

from reader.bookkeeper.digest import code_length, verify
from reader.errors import CorruptError, UnsupportedError
from reader.pulsar.ledger_metadata import parse_ledger_metadata
from tests.unit.bookkeeper.fake_bookie import stored

DATA = b"some entry"


def header(ledger: int, entry: int) -> bytes:
    return b"".join(n.to_bytes(8, "big", signed=True) for n in (ledger, entry, -1, 10))


def entry_of(kind: str, password: bytes = b"") -> bytes:
    head = header(3, 4)
    key = hashlib.sha1(b"mac" + password).digest()
    code = {
        "CRC32C": stored(0, 0, b"")[32:36],  # replaced below
        "CRC32": zlib.crc32(head + DATA).to_bytes(8, "big"),
        "MAC": hmac.digest(key, head + DATA, "sha1"),
        "DUMMY": b"",
    }[kind]
    if kind == "CRC32C":
        return stored(3, 4, DATA)
    return head + code + DATA


def check(kind: str, body: bytes, password: bytes = b"", ledger: int = 3, entry: int = 4) -> bool:
    arena = np.frombuffer(body, np.uint8)
    ends = np.array([len(body)], np.int64)
    good = verify(
        kind, password, arena, np.zeros(1, np.int64), ends, ledger, np.array([entry], np.int64)
    )
    return bool(good[0])


@pytest.mark.parametrize("kind", ["CRC32C", "CRC32", "MAC", "DUMMY"])
def test_every_flipped_byte_is_caught(kind: str) -> None:
    body = entry_of(kind)
    assert check(kind, body)
    assert not check(kind, body, ledger=9)
    assert not check(kind, body, entry=9)
    watched = 16 if kind == "DUMMY" else len(body)
    for at in range(watched):
        bad = bytearray(body)
        bad[at] ^= 1
        assert not check(kind, bytes(bad)), at
    for size in range(32 + code_length(kind)):
        assert not check(kind, body[:size])


def test_a_mac_needs_the_password() -> None:
    body = entry_of("MAC", b"secret")
    assert check("MAC", body, b"secret")
    assert not check("MAC", body, b"guess")


def test_unknown_digests_are_said() -> None:
    with pytest.raises(UnsupportedError, match="SHA9"):
        code_length("SHA9")


REAL = (
    "LedgerMetadata{formatVersion=3, ensembleSize=3, writeQuorumSize=2, ackQuorumSize=2, "
    "state=CLOSED, length=3215609, lastEntryId=599, digestType=CRC32C, password=OMITTED, "
    "ensembles={0=[127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3], 71=[127.0.0.1:4, 127.0.0.1:2, "
    "127.0.0.1:3]}, customMetadata={component=base64:bWE=, application=base64:cHVsc2Fy}}"
)


def test_metadata_as_pulsar_prints_it() -> None:
    found = parse_ledger_metadata(6, REAL)
    assert (found.state, found.last_entry, found.digest_type) == ("CLOSED", 599, "CRC32C")
    assert (found.ensemble_size, found.write_quorum, found.ack_quorum) == (3, 2, 2)
    assert found.length == 3215609
    assert [first for first, _ in found.ensembles] == [0, 71]
    assert found.ensembles[1][1] == ("127.0.0.1:4", "127.0.0.1:2", "127.0.0.1:3")
    opened = REAL.replace("state=CLOSED, length=3215609, lastEntryId=599", "state=OPEN")
    assert parse_ledger_metadata(6, opened).last_entry == -1
    assert parse_ledger_metadata(6, opened).length == -1
    assert not parse_ledger_metadata(6, opened).closed


@pytest.mark.parametrize(
    "text", ["", "LedgerMetadata{}", REAL.replace("=2,", "=x,"), REAL.replace(", 127.0.0.1:3", "")]
)
def test_metadata_that_cannot_be_read(text: str) -> None:
    with pytest.raises(CorruptError, match="ledger 6"):
        parse_ledger_metadata(6, text)
