"""What opens a session with a bookie: frames, and the sums of DIGEST-MD5."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from reader.bookkeeper.bookie_session.handshake import BookieAccess, open_session
from reader.bookkeeper.bookie_session.sasl_digest_md5 import answer
from reader.bookkeeper.bookie_session.v3_handshake import (
    AUTH,
    START_TLS,
    Reply,
    decode_reply,
    encode_auth,
    encode_start_tls,
)
from reader.errors import ConfigurationError, CorruptError
from reader.tls import client_context
from testbed.security import Authority


def test_golden_frames() -> None:
    assert encode_start_tls().hex() == "0000000b0a06080310091800d20600"
    auth = encode_auth("sasl", b"\x01\x02")
    assert auth.hex() == "000000150a06080310051800b2060a0a047361736c12020102"


def test_a_reply_is_read_back() -> None:
    header = bytes.fromhex("0a06080310051800")
    frame = header + b"\x10\x00" + bytes.fromhex("b2060a0a047361736c12020102")
    assert decode_reply(frame) == Reply(AUTH, 0, "sasl", b"\x01\x02")
    refused = bytes.fromhex("0a06080310091800") + b"\x10\xf6\x03"
    assert decode_reply(refused) == Reply(START_TLS, 502, "", b"")


@pytest.mark.parametrize("frame", [b"", b"\x10\x00", b"\x0a\x06\x08\x03", b"\xff" * 11])
def test_garbage_is_corrupt(frame: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_reply(frame)


# The response is that of Java's own SASL client to this challenge, which chose this nonce.
CNONCE = "MHD1pgJwnDDUGv55UVXzswCi/RkWqg5Q0oDoP1gm"
CHALLENGE = b'realm="bookkeeper",nonce="ab\\"c",qop="auth",charset=utf-8,algorithm=md5-sess'


def test_the_response_to_a_challenge() -> None:
    text, proof = answer(CHALLENGE, "lake", 'pass"word', CNONCE)
    assert text.decode() == (
        'charset=utf-8,username="lake",realm="bookkeeper",nonce="ab\\"c",nc=00000001,'
        f'cnonce="{CNONCE}",digest-uri="bookkeeper/bookkeeper",'
        "response=5fd6feca9d70fda1e3ff5aa8be32aaeb,qop=auth"
    )
    assert proof.startswith(b"rspauth=") and len(proof) == 40


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\x60\x82\x01\x00",
        b'nonce="x",qop="auth"',
        CHALLENGE.replace(b'"auth"', b'"auth-conf"'),
    ],
)
def test_another_mechanism_is_said_to_be_one(challenge: bytes) -> None:
    with pytest.raises(ConfigurationError, match="another SASL mechanism"):
        answer(challenge, "lake", "password", "0123")


class _Slow:
    """A TLS context that goes on when the other side has hung up."""

    def __init__(self, context: ssl.SSLContext, hung_up: threading.Event) -> None:
        self._context = context
        self._hung_up = hung_up

    def wrap_socket(self, sock: socket.socket, *, server_hostname: str) -> ssl.SSLSocket:
        opened = self._context.wrap_socket(sock, server_hostname=server_hostname)
        assert self._hung_up.wait(60)
        return opened


def test_a_refusal_is_read_although_the_bookie_has_hung_up(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = authority.sign("bookie").server_context()
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    hung_up = threading.Event()
    ours, theirs = socket.socketpair()

    def serve() -> None:
        theirs.recv(1 << 10)
        theirs.sendall(bytes.fromhex("0000000a0a060803100918001000"))
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(theirs, server_side=True)
        theirs.close()
        hung_up.set()

    thread = threading.Thread(target=serve)
    thread.start()
    slow = _Slow(client_context("test", trust=authority.certificate), hung_up)
    with pytest.raises(
        ConfigurationError, match="refuses the connection: TLSV13_ALERT_CERTIFICATE_REQUIRED"
    ):
        open_session(ours, "127.0.0.1", "127.0.0.1:3181", BookieAccess(slow))
    thread.join()
