"""Entries encrypted for public keys, as ``reader.decode.encryption`` opens them.

Source: ``MessageCryptoBc`` of Pulsar 4.2 (PIP-4): the payload by AES-GCM with a data key of 256
bits and a nonce of its own; the data key, in the metadata, for an RSA key by OAEP with SHA-1, for
an EC key by Bouncy Castle's ECIES.
"""

import hashlib
import hmac
import os
from collections.abc import Mapping

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from reader.errors import ConfigurationError
from reader.wire.pulsar_pb2 import EncryptionKeys, MessageMetadata

_OAEP = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), label=None)
_NONCE = 12
_MAC_KEY = 16
_MOST_ENTRIES = 1 << 20
"""For one data key: far below what AES-GCM permits with nonces that are drawn."""


class Encryption:
    """Seals payloads for the holders of these keys; for one thread.

    ``keys``: public keys (PEM, RSA or EC) by the names that consumers know them by. Raises
    ConfigurationError for one that is none.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._public = {name: _public_key(name, pem) for name, pem in keys.items()}
        self._metadata = MessageMetadata()
        self._cipher: AESGCM | None = None
        self._sealed = 0

    def seal(self, payload: bytes) -> tuple[bytes, bytes]:
        """(fields of MessageMetadata that say how, the payload sealed)."""
        if self._cipher is None or self._sealed >= _MOST_ENTRIES:
            key = AESGCM.generate_key(256)
            self._cipher, self._sealed = AESGCM(key), 0
            wrapped = {name: _wrapped(public, key) for name, public in self._public.items()}
            self._metadata = MessageMetadata(
                encryption_keys=[EncryptionKeys(key=k, value=v) for k, v in wrapped.items()]
            )
        self._sealed += 1
        self._metadata.encryption_param = nonce = os.urandom(_NONCE)
        return self._metadata.SerializeToString(), self._cipher.encrypt(nonce, payload, None)


def _public_key(name: str, pem: bytes) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(
            f"the public key {name!r} cannot be used: {error}", hint="it has to be RSA or EC, PEM"
        ) from None
    if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        return key
    raise ConfigurationError(f"the public key {name!r} is neither RSA nor EC")


def _wrapped(public: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, key: bytes) -> bytes:
    if isinstance(public, rsa.RSAPublicKey):
        return public.encrypt(key, _OAEP)
    sender = ec.generate_private_key(public.curve)
    point = sender.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    secret = point + sender.exchange(ec.ECDH(), public)
    stream = b""
    counter = 1
    while len(stream) < _MAC_KEY + len(key):
        stream += hashlib.sha1(secret + counter.to_bytes(4, "big")).digest()
        counter += 1
    sealed = bytes(a ^ b for a, b in zip(key, stream[_MAC_KEY:], strict=False))
    return point + sealed + hmac.digest(stream[:_MAC_KEY], sealed + bytes(8), "sha1")
