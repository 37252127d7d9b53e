"""A key provider that any process can import: its one key is the same everywhere."""

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

DERIVED = ec.derive_private_key(7, ec.SECP256R1())
KNOWN, NO_KEY, RAISES = "known", "no-key", "raises"


def private_key(name: str) -> bytes | None:
    """Return the key of ``KNOWN``; fail for two other names."""
    if name == RAISES:
        raise PermissionError("hvs.secret")
    if name == NO_KEY:
        return b"nonsense"
    pem = DERIVED.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem if name == KNOWN else None
