"""The client's side of SASL DIGEST-MD5 (RFC 2831), as far as bookies use it. No I/O.

Only ``qop=auth`` (authentication of both sides), one realm, no authorization id. What is sent is a
hash of the password and of both sides' nonces; the mechanism's hash is MD5, so it needs TLS.
"""

import re
from hashlib import md5

from reader.errors import ConfigurationError

_PAIR = re.compile(r'([a-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^",\s]+))')
_URI = "bookkeeper/bookkeeper"  # service and host, the same for all bookies


def answer(challenge: bytes, user: str, password: str, cnonce: str) -> tuple[bytes, bytes]:
    """(response to a bookie's challenge, the proof that the bookie then has to send).

    ``cnonce``: the client's nonce. Raises ConfigurationError where the challenge is not one of
    DIGEST-MD5.
    """
    found = {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        for name, quoted, plain in _PAIR.findall(challenge.decode("utf-8", "replace"))
    }
    offered = [one.strip() for one in found.get("qop", "auth").split(",")]
    if found.get("algorithm") != "md5-sess" or "nonce" not in found or "auth" not in offered:
        raise ConfigurationError(
            "a bookie requires another SASL mechanism than DIGEST-MD5",
            hint="Kerberos (GSSAPI) is not supported: read through the broker",
        )
    realm, nonce = found.get("realm", ""), found["nonce"]
    response = expected(user, password, realm, nonce, cnonce, "AUTHENTICATE:")
    parts = {
        "charset": "utf-8",
        "username": _quoted(user),
        "realm": _quoted(realm),
        "nonce": _quoted(nonce),
        "nc": "00000001",
        "cnonce": _quoted(cnonce),
        "digest-uri": _quoted(_URI),
        "response": response,
        "qop": "auth",
    }
    text = ",".join(f"{name}={value}" for name, value in parts.items())
    proof = expected(user, password, realm, nonce, cnonce, ":")
    return text.encode(), f"rspauth={proof}".encode()


def expected(user: str, password: str, realm: str, nonce: str, cnonce: str, verb: str) -> str:
    """The hash of section 2.1.2.1 for one side: ``verb`` is "AUTHENTICATE:", or ":" for theirs."""
    secret = md5(f"{user}:{realm}:{password}".encode(), usedforsecurity=False).digest()
    first = _hex(secret + f":{nonce}:{cnonce}".encode())
    second = _hex(f"{verb}{_URI}".encode())
    return _hex(f"{first}:{nonce}:00000001:{cnonce}:auth:{second}".encode())


def _hex(data: bytes) -> str:
    return md5(data, usedforsecurity=False).hexdigest()


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
