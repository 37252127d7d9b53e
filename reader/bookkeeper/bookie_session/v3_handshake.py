"""BookKeeper's v3 protocol: TLS and authentication at the start of a connection. No I/O.

Frames as in ``v3`` (BookkeeperProtocol.proto of BookKeeper 4.17):

    Request    header = 1, authRequest = 102 {authPluginName = 1, payload = 2},
               startTLSRequest = 106 {}
    Response   header = 1 {operation = 2}, status = 2, authResponse = 102 {as above}
"""

from dataclasses import dataclass

from reader.bookkeeper.v3 import framed
from reader.errors import CorruptError
from reader.wire import Fields, encoded

AUTH, START_TLS = 5, 9
NO_PLUGIN = "AuthDisabledPlugin"
"""The plugin's name on a bookie or a client without an authentication plugin."""


@dataclass(frozen=True, slots=True)
class Reply:
    """``plugin`` and ``payload``: of an answer to AUTH."""

    operation: int
    status: int
    plugin: str
    payload: bytes


def encode_start_tls() -> bytes:
    """A whole frame; its answer is the last without TLS."""
    return framed(START_TLS, 106, b"")


def encode_auth(plugin: str, payload: bytes) -> bytes:
    """A whole frame with one step of the plugin's exchange."""
    return framed(AUTH, 102, encoded((1, plugin), (2, payload)))


def decode_reply(frame: bytes) -> Reply:
    """Decode a frame. Raises CorruptError for what is not the protocol."""
    answer = Fields(frame, "a bookie's answer")
    operation, status = answer.message(1).number(2, -1), answer.number(2, -1)
    if operation < 0 or status < 0:
        raise CorruptError("a bookie's answer has no header")
    said = answer.message(102)
    return Reply(operation, status, said.text(1), said.data(2) or b"")
