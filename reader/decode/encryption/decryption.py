"""Decrypts entries as a consumer with the private key does.

A producer encrypts the payload of each entry (a batch, a message or a chunk, after compression)
with AES-GCM; the data key, itself encrypted for each of the producer's public keys, is in the
metadata (PIP-4). Source: ``MessageCryptoBc`` of Pulsar 4.2.

- payload: AES-GCM, nonce ``encryption_param`` (12 bytes), tag of 16 bytes at the end;
- data key for an RSA key: OAEP with SHA-1 and MGF1;
- data key for an EC key: Bouncy Castle's "ECIES" (IESEngine without a cipher): V, C, T with V the
  sender's point, Z = ECDH(V), K2 (16 bytes) and K1 = KDF2-SHA1(V ‖ Z), C = key xor K1 and
  T = HMAC-SHA1(K2, C ‖ eight zero bytes).
"""

import hashlib
import hmac
import re
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import islice

import numpy as np
from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from reader.decode import tables
from reader.decode.encryption.encryption_context import encryption_keys
from reader.errors import ConfigurationError, UnavailableError
from reader.kernels.array_types import Bytes, Int64s
from reader.model import EntryBlock
from reader.wire.pulsar_pb2 import BrokerEntryMetadata

_KEPT_DATA_KEYS = 4096
_KEPT_PRIVATE_KEYS = 1024
_KEPT_REASONS = 256
_LONGEST_NAME = 128  # of names whose reasons are kept
# Producers choose how many keys an entry names, and each costs a question for a private key, or an
# operation of one. Pulsar's own name each of their keys once, and have a handful.
_MOST_KEYS = 8
_MOST_LISTED = 128  # in which those to be tried first are looked for
_MOST_DATA_KEY = 4096  # bytes, encrypted: for RSA of 32,768 bits
_TAG = 20  # of HMAC-SHA1
_MAC_KEY = 16
_PRIVATE = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)

_PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class Decryption:
    """Opens entries with the private keys that ``pem`` gives by name (None: there is none).

    Of an entry's keys only a few are tried, those named in ``first`` before others. Keeps private
    keys and data keys. UnavailableError of ``pem`` becomes the reason of the entries that stay
    encrypted. Raises ConfigurationError for a private key that cannot be used, and what else
    ``pem`` raises.
    """

    def __init__(self, pem: Callable[[str], bytes | None], *, first: Collection[str] = ()) -> None:
        self._pem = pem
        self._first = first
        self._private: OrderedDict[str, _PrivateKey] = OrderedDict()
        self._reasons: OrderedDict[str, str] = OrderedDict()
        self._data: OrderedDict[tuple[str, bytes], AESGCM | None] = OrderedDict()

    def decrypt(self, metadata: bytes, ciphertext: bytes) -> bytes | str:
        """The payload of an entry with this MessageMetadata.

        Where no key opens it a text: why a key could not be had; "" without more to say.
        """
        param, keys = encryption_keys(metadata)
        listed = sorted(islice(keys, _MOST_LISTED), key=lambda one: one[0] not in self._first)
        reason = ""
        for name, value in listed[:_MOST_KEYS]:
            try:
                cipher = self._cipher(name, value)
            except UnavailableError as error:
                reason = error.message
                continue
            if cipher is None:
                continue
            try:
                return cipher.decrypt(param, ciphertext, None)
            except (InvalidTag, ValueError):
                continue
        more = f"it names more than {_MOST_KEYS} keys" if len(listed) > _MOST_KEYS else ""
        return "; ".join(filter(None, (reason, more)))

    def decrypt_block(
        self, block: EntryBlock, entries: Int64s, marks: Bytes
    ) -> tuple[EntryBlock, Bytes]:
        """The block with its entries decrypted where possible, behind the others; the new marks."""
        offsets, lengths, marks = block.offsets.copy(), block.lengths.copy(), marks.copy()
        end = len(block.arena)
        decrypted: list[bytes] = []
        sealed: dict[int, str] = {}
        encrypted = (entries[tables.E_KIND] == tables.WHOLE) & (
            entries[tables.E_REASON] == tables.ENCRYPTED
        )
        for i in np.flatnonzero(encrypted).tolist():
            metadata = _piece(block, entries, i, tables.E_METADATA, tables.E_METADATA_LENGTH)
            payload = self.decrypt(
                metadata, _piece(block, entries, i, tables.E_PAYLOAD, tables.E_PAYLOAD_LENGTH)
            )
            if isinstance(payload, str):
                if payload:
                    sealed[i] = payload
                continue
            published, index = int(entries[tables.E_BROKER, i]), int(entries[tables.E_INDEX, i])
            entry = plain_entry(
                None if published == tables.NO_TIME else published,
                index if int(entries[tables.E_FLAGS, i]) & tables.HAS_INDEX else None,
                metadata,
                payload,
            )
            offsets[i], lengths[i], marks[i] = end, len(entry), tables.MARK_DECRYPTED
            decrypted.append(entry)
            end += len(entry)
        block = replace(block, sealed=sealed)
        if not decrypted:
            return block, marks
        arena = np.concatenate([block.arena, np.frombuffer(b"".join(decrypted), np.uint8)])
        return replace(block, offsets=offsets, lengths=lengths, arena=arena), marks

    def _cipher(self, name: str, encrypted: bytes) -> AESGCM | None:
        """Raises UnavailableError where there may be a private key that cannot be had now."""
        if len(encrypted) > _MOST_DATA_KEY:
            return None
        private = self._private_key(name)
        if private is None:
            return None
        known = (name, encrypted)
        if known not in self._data:
            self._data[known] = _open_data_key(private, encrypted)
            while len(self._data) > _KEPT_DATA_KEYS:
                self._data.popitem(last=False)
        return self._data[known]

    def _private_key(self, name: str) -> _PrivateKey | None:
        if name in self._reasons:  # the chunks of a message are all opened, or none of them
            raise UnavailableError(self._reasons[name])
        if name not in self._private:
            try:
                pem = self._pem(name)
            except UnavailableError as error:
                if len(name) <= _LONGEST_NAME:
                    self._reasons[name] = error.message
                    while len(self._reasons) > _KEPT_REASONS:
                        self._reasons.popitem(last=False)
                raise
            if pem is None:  # not kept here: producers make up as many names as they like
                return None
            self._private[name] = private_key(name, pem)
            while len(self._private) > _KEPT_PRIVATE_KEYS:
                self._private.popitem(last=False)
        return self._private[name]


def _open_data_key(private: _PrivateKey, encrypted: bytes) -> AESGCM | None:
    try:
        if isinstance(private, rsa.RSAPrivateKey):
            return AESGCM(private.decrypt(encrypted, _OAEP))
        return AESGCM(_ecies(private, encrypted))
    except (ValueError, InvalidTag):  # encrypted for another key of this name
        return None


_OAEP = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), label=None)


def plain_entry(
    broker_time: int | None, index: int | None, metadata: bytes, payload: bytes
) -> bytes:
    """An unencrypted entry as it is stored, without a checksum.

    ``broker_time``: µs since the epoch; None: the broker added no metadata of that kind.
    """
    broker = BrokerEntryMetadata(
        broker_timestamp=None if broker_time is None else broker_time // 1000, index=index
    ).SerializeToString()
    head = b"\x0e\x02" + len(broker).to_bytes(4, "big") + broker if broker else b""
    return head + len(metadata).to_bytes(4, "big") + metadata + payload


def private_key(name: str, pem: bytes) -> _PrivateKey:
    """Raises ConfigurationError for what is no RSA or EC key without a password."""
    found = _PRIVATE.search(pem)  # EC PARAMETERS may stand before it
    try:
        key = load_pem_private_key(found[0] if found else pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(
            f"the private key {name!r} cannot be used: {str(error).splitlines()[0]}",
            hint="encryption.keys names files of PEM without a password",
        ) from error
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise ConfigurationError(f"the private key {name!r} is neither RSA nor EC")
    return key


def _ecies(private: ec.EllipticCurvePrivateKey, encrypted: bytes) -> bytes:
    """Raises ValueError for what this key does not open."""
    size = 1 + 2 * ((private.curve.key_size + 7) // 8)
    point, sealed, tag = encrypted[:size], encrypted[size:-_TAG], encrypted[-_TAG:]
    public = ec.EllipticCurvePublicKey.from_encoded_point(private.curve, point)
    secret = point + private.exchange(ec.ECDH(), public)
    stream = b""
    counter = 1
    while len(stream) < _MAC_KEY + len(sealed):
        stream += hashlib.sha1(secret + counter.to_bytes(4, "big")).digest()
        counter += 1
    mac_key, pad = stream[:_MAC_KEY], stream[_MAC_KEY:]
    if not hmac.compare_digest(hmac.digest(mac_key, sealed + bytes(8), "sha1"), tag):
        raise ValueError("not encrypted for this key")
    return bytes(a ^ b for a, b in zip(sealed, pad, strict=False))


def _piece(block: EntryBlock, entries: Int64s, i: int, start: int, length: int) -> bytes:
    at = int(entries[start, i])
    return block.arena[at : at + int(entries[length, i])].tobytes()
