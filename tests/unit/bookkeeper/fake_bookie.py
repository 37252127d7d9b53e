"""A bookie that does as it is told: for what a real one cannot do on demand."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from reader.closing import Closing
from reader.kernels.crc32c import crc32c

# What to do with a request for (ledger, entry): bytes to send, None to stay silent.
Script = Callable[[int, int, int], bytes | None]
# The same for a batch read of (ledger, first entry, entries at most, bytes at most).
BatchScript = Callable[[int, int, int, int, int], bytes | None]
# An answer to it that is sent part after part.
SlowScript = Callable[[int, int, int, int, int], Iterator[bytes]]

_BATCH = b"\x02\x07\x00\x00"


def stored(ledger: int, entry: int, data: bytes) -> bytes:
    """An entry as a bookie keeps it, with a CRC32C digest."""
    header = b"".join(n.to_bytes(8, "big", signed=True) for n in (ledger, entry, entry - 1, 0))
    whole = np.frombuffer(header + data, np.uint8)
    return header + int(crc32c(whole, 0, len(whole))).to_bytes(4, "big") + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def answer(request: int, status: int, ledger: int, entry: int, body: bytes | None = None) -> bytes:
    """A whole response frame."""
    header = b"\x08\x03\x10\x01\x18" + varint(request)
    read = b"\x08" + varint(status) + b"\x10" + varint(ledger) + b"\x18" + varint(entry)
    if body is not None:
        read += b"\x22" + varint(len(body)) + body
    message = (
        b"\x0a" + varint(len(header)) + header + b"\x10" + varint(status)
        + b"\xa2\x06" + varint(len(read)) + read
    )  # fmt: skip
    return len(message).to_bytes(4, "big") + message


def batch_answer(
    request: int, status: int, ledger: int, first: int, bodies: Sequence[bytes] = ()
) -> bytes:
    """A whole response frame to a batch read."""
    head = _BATCH + struct.pack(">Iqqq", status, ledger, first, request)
    content = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    return (len(head) + len(content)).to_bytes(4, "big") + head + content


class FakeBookie(Closing):
    """Listens on loopback; ``script(request, ledger, entry)`` says what to send.

    A script may raise ConnectionError to close the connection. ``asked`` lists the entries.
    ``batch`` says what to send to batch reads, which ``batches`` lists as (first, entries); without
    one it closes the connection, as an older bookie does. ``connections``: how many there were.
    ``tls``: from a connection's first byte.
    """

    def __init__(
        self,
        script: Script,
        batch: BatchScript | SlowScript | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._script = script
        self._batch = batch
        self._tls = tls
        self.asked: list[int] = []
        self.batches: list[tuple[int, int]] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() does not
        self._server.close()
        for connection in self._open:
            connection.close()

    def hang_up(self) -> None:
        """End all connections, and take new ones."""
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as bookies do
            self._open.append(connection)
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        file = connection.makefile("rb")
        try:
            while size := file.read(4):
                reply = self._reply(file.read(int.from_bytes(size, "big")))
                for part in () if reply is None else [reply] if isinstance(reply, bytes) else reply:
                    connection.sendall(part)
        except (OSError, ValueError):
            pass
        finally:
            file.close()
            connection.close()

    def _reply(self, frame: bytes) -> bytes | Iterator[bytes] | None:
        if frame.startswith(_BATCH):
            ledger, first, request, entries, size = struct.unpack(">qqqiq", frame[4:])
            self.batches.append((first, entries))
            if self._batch is None:
                raise ConnectionError
            return self._batch(request, ledger, first, entries, size)
        request, ledger, entry = self._parse(frame)
        self.asked.append(entry)
        return self._script(request, ledger, entry)

    def _parse(self, frame: bytes) -> tuple[int, int, int]:
        """The fixed shape that the client writes: header, then readRequest."""
        numbers, at = [], 0

        def number() -> int:
            nonlocal at
            value = shift = 0
            while True:
                byte = frame[at]
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    return value

        assert number() == 0x0A
        number()
        for _ in range(3):
            number()
            numbers.append(number())
        assert numbers[:2] == [3, 1]
        assert number() == 100 << 3 | 2
        end = number() + at
        found = {}
        while at < end:
            tag = number()
            found[tag >> 3] = number()
        assert set(found) == {1, 2}, "no flag may ever be set: a read must not fence"
        return numbers[2], found[1], found[2]


class Stalling(Closing):
    """A network that gives of what the bookie at `address` answers so many bytes, and no more."""

    def __init__(self, address: str, most: int) -> None:
        self._to = address
        self._left = most
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in [self._server, *self._open]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                host, _, port = self._to.rpartition(":")
                bookie = socket.create_connection((host, int(port)))
                self._open += [client, bookie]
                for one in ((client, bookie, False), (bookie, client, True)):
                    threading.Thread(target=self._forward, args=one, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1000):
                if answers:
                    data = data[: self._left]
                    self._left -= len(data)
                target.sendall(data)
