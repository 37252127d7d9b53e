"""BookKeeper's v3 protocol: TLS and authentication at the start of a connection. No I/O.

Frames as in ``v3`` (BookkeeperProtocol.proto of BookKeeper 4.17):

    Request    header = 1, authRequest = 102 {authPluginName = 1, payload = 2},
               startTLSRequest = 106 {}
    Response   header = 1 {operation = 2}, status = 2, authResponse = 102 {as above}
"""

from __future__ import annotations

from dataclasses import dataclass

from reader.bookkeeper.v3 import fields, framed, varint
from reader.errors import CorruptError

__all__ = [
    "AUTH",
    "NO_PLUGIN",
    "START_TLS",
    "Reply",
    "decode_reply",
    "encode_auth",
    "encode_start_tls",
]

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
    name = plugin.encode()
    body = b"\x0a" + varint(len(name)) + name + b"\x12" + varint(len(payload)) + payload
    return framed(AUTH, 102, body)


def decode_reply(frame: memoryview) -> Reply:
    """Decode a frame. Raises CorruptError for what is not the protocol."""
    operation, status, plugin, payload = -1, -1, b"", b""
    try:
        for number, value in fields(frame):
            if number == 2 and isinstance(value, int):
                status = value
            elif number in (1, 102) and isinstance(value, memoryview):
                for inner, found in fields(value):
                    if number == 1 and inner == 2 and isinstance(found, int):
                        operation = found
                    elif number == 102 and isinstance(found, memoryview):
                        plugin = bytes(found) if inner == 1 else plugin
                        payload = bytes(found) if inner == 2 else payload
    except IndexError as error:
        raise CorruptError("a bookie's answer ends too early") from error
    if operation < 0 or status < 0:
        raise CorruptError("a bookie's answer has no header")
    return Reply(operation, status, plugin.decode(errors="replace"), payload)
