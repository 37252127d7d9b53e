"""Decryption, against encryption by the rules of its docstring; and anything that is not that."""

import hashlib
import hmac
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.decode import Decryption, EntryDecoder
from reader.decode.encryption.decryption import plain_entry
from reader.decode.tables import REASONS, STRAY
from reader.errors import ConfigurationError, UnavailableError
from reader.model import SchemaInfo
from reader.model.columns import METADATA
from reader.model.row_kinds import RowKind, is_kind, is_not_kind
from reader.payload import payload_fields
from reader.sources.row_format import RowFormat
from reader.sources.rows import RowBuilder
from tests.support.examples import examples
from tests.unit.decode.entries import PARTITION, block_of, entry, proto, single

RSA = rsa.generate_private_key(65537, 1024)
CURVES = {curve.name: ec.generate_private_key(curve) for curve in (ec.SECP256R1(), ec.SECP384R1())}
DATA_KEY, NONCE = bytes(range(32)), bytes(12)
COLUMNS = Path(__file__).parents[3] / "docs" / "columns.md"


def pem(key: Any, kind: Any = serialization.PrivateFormat.PKCS8) -> bytes:
    return bytes(key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()))


def for_rsa(data_key: bytes = DATA_KEY) -> bytes:
    mask = padding.MGF1(hashes.SHA1())
    oaep = padding.OAEP(mask, hashes.SHA1(), label=None)
    return RSA.public_key().encrypt(data_key, oaep)


def for_curve(key: ec.EllipticCurvePrivateKey, data_key: bytes = DATA_KEY) -> bytes:
    sender = ec.generate_private_key(key.curve)
    uncompressed = serialization.PublicFormat.UncompressedPoint
    point = sender.public_key().public_bytes(serialization.Encoding.X962, uncompressed)
    shared = point + sender.exchange(ec.ECDH(), key.public_key())
    stream = b"".join(
        hashlib.sha1(shared + counter.to_bytes(4, "big")).digest() for counter in range(1, 5)
    )
    sealed = bytes(a ^ b for a, b in zip(data_key, stream[16:], strict=False))
    return point + sealed + hmac.digest(stream[:16], sealed + bytes(8), "sha1")


def sealed_entry(payload: bytes, encrypted: dict[str, bytes], **metadata: Any) -> bytes:
    fields = [proto([(1, name), (2, value)]) for name, value in encrypted.items()]
    again = {"encryption_keys": fields[1]} if len(fields) > 1 else {}
    return entry(
        AESGCM(DATA_KEY).encrypt(NONCE, payload, None),
        encryption_keys=fields[0],
        encryption_param=NONCE,
        again=again,
        **metadata,
    )


def payloads(entries: list[bytes], keys: dict[str, bytes]) -> list[tuple[Any, Any]]:
    """(payload, rescued) of each row."""
    decoder = EntryDecoder(PARTITION, decryption=Decryption(keys.get))
    found: list[tuple[Any, Any]] = []
    for messages in decoder.decode(block_of(entries)):
        assert messages.payload is not None
        rows = range(len(messages))
        found += [(messages.payload[row], messages.rescued.get(row)) for row in rows]
    return found


@pytest.mark.parametrize("kind", ["rsa", *CURVES])
def test_each_kind_of_key(kind: str) -> None:
    key = RSA if kind == "rsa" else CURVES[kind]
    encrypted = for_rsa() if kind == "rsa" else for_curve(CURVES[kind])
    raw = sealed_entry(b"secret", {"other": b"?", "mine": encrypted})
    for form in (serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL):
        keys = {"mine": b"-----BEGIN EC PARAMETERS-----\nBg==\n" + pem(key, form)}
        assert payloads([raw, entry(b"open")], keys) == [(b"secret", None), (b"open", None)]


@pytest.mark.parametrize("keys", [{}, {"k": pem(RSA)}], ids=["sealed", "opened"])
def test_that_there_were_encrypted_entries_is_known(keys: dict[str, bytes]) -> None:
    """How many rows they are depends on keys, so such counts are not kept."""
    for raw, expected in ((entry(b"open"), False), (sealed_entry(b"x", {"k": for_rsa()}), True)):
        decoder = EntryDecoder(PARTITION, decryption=Decryption(keys.get))
        list(decoder.decode(block_of([raw])))
        assert [one.encrypted for one in decoder.take_seen()] == [expected]


def test_a_batch_is_told_apart() -> None:
    batch = single(b"one") + single(b"two")
    raw = sealed_entry(batch, {"k": for_rsa()}, num_messages_in_batch=2)
    assert [value for value, _ in payloads([raw], {"k": pem(RSA)})] == [b"one", b"two"]


@pytest.mark.parametrize(
    "encrypted",
    [
        b"",
        b"short",
        bytes(128),
        for_rsa(b"no AES key"),
        for_rsa(bytes(32)),
        for_curve(CURVES["secp256r1"])[:-1],
        for_curve(CURVES["secp256r1"], bytes(32)),
        for_curve(CURVES["secp384r1"]),
    ],
)
@pytest.mark.parametrize("key", [RSA, CURVES["secp256r1"]], ids=["rsa", "ec"])
def test_what_does_not_open_stays_as_it_is(encrypted: bytes, key: Any) -> None:
    raw = sealed_entry(b"secret", {"k": encrypted})
    ((value, rescued),) = payloads([raw], {"k": pem(key)})
    assert value is None
    assert rescued[:2] == (AESGCM(DATA_KEY).encrypt(NONCE, b"secret", None), "encrypted")


def test_why_a_key_could_not_be_had_is_in_the_row() -> None:
    """Of that entry alone: no producer's name for a key stops a topic."""

    def pem_of(name: str) -> bytes:
        if name == "mine":
            return pem(RSA)
        raise UnavailableError(f"the vault is away{len(name)}")

    entries = [sealed_entry(b"secret", {name: for_rsa()}) for name in ("other", "mine")]
    decoder = EntryDecoder(PARTITION, decryption=Decryption(pem_of))
    [messages] = decoder.decode(block_of(entries))
    assert messages.payload is not None
    assert messages.payload[1] == b"secret"
    ciphertext = AESGCM(DATA_KEY).encrypt(NONCE, b"secret", None)
    assert messages.rescued == {0: (ciphertext, "encrypted: the vault is away5", RowKind.ENCRYPTED)}


def test_a_key_that_cannot_be_had_is_not_asked_for_again_in_the_same_read() -> None:
    asked: list[str] = []

    def pem_of(name: str) -> bytes:
        asked.append(name)
        if len(asked) > 1:
            return pem(RSA)
        raise UnavailableError("the vault is away")

    entries = [sealed_entry(b"secret", {"k": for_rsa()})] * 2
    decoder = EntryDecoder(PARTITION, decryption=Decryption(pem_of))
    [messages] = decoder.decode(block_of(entries))
    assert len(messages.rescued) == 2
    assert asked == ["k"]


def test_a_chunk_that_stays_encrypted_is_no_part_of_a_message() -> None:
    """The others of its message are opened; what they give is a rescued row."""
    chunks = [
        sealed_entry(
            b"half%d" % number,
            {name: for_rsa()},
            uuid=b"u",
            num_chunks_from_msg=2,
            total_chunk_msg_size=10,
            chunk_id=number,
        )
        for number, name in enumerate(("other", "mine"))
    ]
    found = payloads(chunks, {"mine": pem(RSA)})
    ciphertext = AESGCM(DATA_KEY).encrypt(NONCE, b"half0", None)
    assert [value for value, _ in found] == [None, None]
    assert found[0][1] == (ciphertext, "encrypted", RowKind.ENCRYPTED)
    assert found[1][1][0].endswith(ciphertext + b"half1")
    assert found[1][1][1:] == (REASONS[STRAY], RowKind.UNMATCHED)


def test_an_entry_costs_few_operations_of_a_private_key() -> None:
    """Also where it has many data keys under one name."""
    ciphertext = AESGCM(DATA_KEY).encrypt(NONCE, b"secret", None)
    decryption = Decryption({"k": pem(RSA)}.get)
    for others, expected in ((7, b"secret"), (8, "it names more than 8 keys")):
        values = [bytes([others, number]) * 128 for number in range(others)] + [for_rsa()]
        fields = [(13, proto([(1, b"k"), (2, value)])) for value in values]
        assert decryption.decrypt(proto([*fields, (15, NONCE)]), ciphertext) == expected


def test_a_changed_ciphertext_is_not_opened() -> None:
    raw = bytearray(sealed_entry(b"secret", {"k": for_rsa()}, checksum=False))
    raw[-1] ^= 1
    ((value, rescued),) = payloads([bytes(raw)], {"k": pem(RSA)})
    assert (value, rescued[1]) == (None, "encrypted")


@pytest.mark.parametrize(
    "text", [b"", b"nonsense", pem(ed25519.Ed25519PrivateKey.generate()), pem(RSA)[:200]]
)
def test_a_key_of_no_use_is_an_error(text: bytes) -> None:
    with pytest.raises(ConfigurationError, match="the private key 'k'"):
        payloads([sealed_entry(b"secret", {"k": for_rsa()})], {"k": text})


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.sampled_from(["rsa", "ec"]) | st.binary(max_size=300), min_size=1, max_size=2),
    st.binary(max_size=20),
    st.binary(max_size=100),
    st.integers(-1, 3),
)
def test_anything_gives_rows(
    encrypted: list[str | bytes], nonce: bytes, payload: bytes, batch: int
) -> None:
    """Whatever the parts say: one row at least, and never an error."""
    known = {"rsa": for_rsa(), "ec": for_curve(CURVES["secp256r1"])}
    values = [known[one] if isinstance(one, str) else one for one in encrypted]
    fields = [proto([(1, f"k{i}"), (2, value)]) for i, value in enumerate(values)]
    with suppress(ValueError):  # a nonce of no use
        payload = AESGCM(DATA_KEY).encrypt(nonce, payload, None)
    more: dict[str, Any] = {} if batch < 0 else {"num_messages_in_batch": batch}
    more["again"] = {"encryption_keys": fields[1]} if len(fields) > 1 else {}
    raw = entry(payload, encryption_keys=fields[0], encryption_param=nonce, **more)
    keys = {"k0": pem(RSA), "k1": pem(CURVES["secp256r1"])}
    assert payloads([raw], keys)


@pytest.mark.parametrize("broker_time", [None, 0, 1_700_000_000_123_000])
@pytest.mark.parametrize("index", [None, 0, 2**40])
def test_an_entry_made_again(broker_time: int | None, index: int | None) -> None:
    metadata = entry(b"", checksum=False)[4:]
    raw = plain_entry(broker_time, index, metadata, b"payload")
    (messages,) = EntryDecoder(PARTITION).decode(block_of([raw]))
    assert messages.payload is not None
    assert messages.payload[0] == b"payload"
    assert messages.columns["__index"].to_pylist() == [index]
    assert messages.columns["__brokerPublishTime"].cast("int64").to_pylist() == [broker_time]
    assert not messages.rescued


def test_keys_are_asked_for_once() -> None:
    asked: list[str] = []

    def pem_of(name: str) -> bytes | None:
        asked.append(name)
        return pem(RSA)

    entries = [sealed_entry(os.urandom(20), {"k": for_rsa()}) for _ in range(20)]
    decoder = EntryDecoder(PARTITION, decryption=Decryption(pem_of))
    for _ in range(2):
        assert sum(len(messages) for messages in decoder.decode(block_of(entries))) == 20
    assert asked == ["k"]


def test_rows_of_encrypted_entries_are_found_again() -> None:
    """In tables, by what these rows hold: what no key has opened, and nothing else."""
    entries = [
        entry(b"open"),
        sealed_entry(b"opened", {"k": for_rsa()}),
        sealed_entry(b"opened", {"k": for_rsa()}, partition_key=b"\xff"),  # has an error of its own
        sealed_entry(b"sealed", {"other": for_rsa()}),
        sealed_entry(b"sealed", {"other": for_rsa()}, partition_key=b"\xff"),
        sealed_entry(b"sealed", {"other": for_rsa()})[:-1],  # damaged
        b"",
    ]
    schemas = (SchemaInfo(0, "BYTES", ""),)
    fields = payload_fields(schemas)
    columns = pa.schema([*fields, *METADATA])
    builder = RowBuilder(PARTITION, RowFormat(fields, schemas, columns))
    decoder = EntryDecoder(PARTITION, decryption=Decryption({"k": pem(RSA)}.get))
    [messages] = decoder.decode(block_of(entries))
    [batch] = builder.build(messages)
    errors = batch.column("__error").to_pylist()
    assert (errors[0], errors[1], errors[2]) == (None, None, "key is not UTF-8")
    assert errors[3:5] == ["encrypted", "encrypted; key is not UTF-8"]
    kinds = batch.column("__kind").to_pylist()
    assert kinds == [*["message"] * 3, "encrypted", "encrypted", *["undecodable"] * 2]
    assert batch.column("__encryptionContext").is_valid().to_pylist()[1:5] == [True] * 4
    sealed = batch.filter(is_kind(RowKind.ENCRYPTED))
    assert sealed.column("__entryId").to_pylist() == [13, 14]
    assert batch.filter(is_not_kind(RowKind.ENCRYPTED)).num_rows == batch.num_rows - 2


def test_kinds_of_rows_are_stored_values() -> None:
    """Tables hold them: another text would lose the decryption of all that is in them."""
    assert [kind.value for kind in RowKind] == [
        "message", "undecodable", "encrypted", "incomplete", "unmatched", "damaged",
    ]  # fmt: skip
    documented = COLUMNS.read_text()
    assert [kind for kind in RowKind if f"| `{kind}` |" not in documented] == []
