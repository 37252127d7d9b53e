"""Entries that are sealed, opened by our decoder; what it takes for public keys."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from reader.decode import Decryption
from reader.encode import Encryption, EntryFormat
from reader.errors import ConfigurationError
from tests.unit.decode.entries import decode
from tests.unit.decode.test_decryption import RSA, pem
from tests.unit.encode.messages.encoding import Row, decoded, encode, expected, independent, stored

PRIVATE = {
    "rsa": RSA,
    "p256": ec.generate_private_key(ec.SECP256R1()),
    "p384": ec.generate_private_key(ec.SECP384R1()),
    "p521": ec.generate_private_key(ec.SECP521R1()),
}
ROWS = [Row(b"one", "k", properties={"a": "1"}), Row(None, "t"), Row(b"later", deliver=5)]


def public(key: object) -> bytes:
    made = key.public_key()  # type: ignore[attr-defined]
    return bytes(made.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


@pytest.mark.parametrize("name", list(PRIVATE))
def test_each_kind_of_key_opens_them(name: str) -> None:
    entries = encode(ROWS, encryption=Encryption({name: public(PRIVATE[name])}))
    keys = {name: pem(PRIVATE[name])}
    rows = decoded(entries, decryption=Decryption(keys.get))
    for row, wanted in zip(rows, expected(ROWS), strict=True):
        assert {column: row[column] for column in wanted} == wanted


@pytest.mark.parametrize("name", list(PRIVATE))
def test_any_of_several_keys_opens_them(name: str) -> None:
    everyone = Encryption({one: public(key) for one, key in PRIVATE.items()})
    entries = encode(ROWS, encryption=everyone)
    keys = {name: pem(PRIVATE[name])}
    rows = decoded(entries, decryption=Decryption(keys.get))
    assert [row["payload"] for row in rows] == [b"one", None, b"later"]


def test_nothing_of_a_payload_can_be_read_without_a_key() -> None:
    entries = encode([Row(b"secret " * 20)], encryption=Encryption({"k": public(PRIVATE["rsa"])}))
    [data] = stored(entries)
    assert b"secret" not in data
    [row] = decode([data])
    assert row["payload"] is None
    assert row["rescued"][1] == "encrypted"
    [one] = independent(entries)
    assert [key.key for key in one.metadata.encryption_keys] == ["k"]
    assert len(one.metadata.encryption_param) == 12


def test_chunks_are_sealed_one_by_one() -> None:
    payload = b"".join(b"%d " % n for n in range(20_000))
    form = EntryFormat(batch_bytes=4 << 10, entry_bytes=8 << 10)
    entries = encode([Row(payload, "k")], form, Encryption({"k": public(PRIVATE["p256"])}))
    assert len(entries) > 5
    found = independent(entries)
    assert len({one.metadata.encryption_param for one in found}) == len(entries)
    [row] = decoded(entries, decryption=Decryption({"k": pem(PRIVATE["p256"])}.get))
    assert row["payload"] == payload


def test_nonces_differ_and_a_data_key_serves_many_entries() -> None:
    sealed = encode(
        [Row(b"same")] * 50, EntryFormat(messages=1), Encryption({"k": public(PRIVATE["rsa"])})
    )
    found = independent(sealed)
    assert len({one.metadata.encryption_param for one in found}) == 50
    assert len({one.payload for one in found}) == 50
    assert len({one.metadata.encryption_keys[0].value for one in found}) == 1


def test_two_encoders_have_data_keys_of_their_own() -> None:
    keys = {"k": public(PRIVATE["rsa"])}
    entries = [encode([Row(b"same")], encryption=Encryption(keys))[0] for _ in range(2)]
    found = independent(entries)
    assert found[0].metadata.encryption_keys[0].value != found[1].metadata.encryption_keys[0].value


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "cannot be used"),
        (b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", "cannot be used"),
        (pem(PRIVATE["rsa"]), "cannot be used"),
        (public(ed25519.Ed25519PrivateKey.generate()), "is neither RSA nor EC"),
    ],
    ids=["empty", "hollow", "private", "ed25519"],
)
def test_what_is_no_public_key(data: bytes, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the public key 'mine' {text}"):
        Encryption({"mine": data})
