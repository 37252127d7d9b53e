"""`TcpProxy`: forwards a port, until it is told to misbehave."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

from testbed.closing import Closing
from testbed.process import free_ports


class TcpProxy(Closing):
    """`with TcpProxy("127.0.0.1:6650") as proxy:` and let the client use `proxy.address`.

    `resume()` ends every misbehaviour. `connections`, `bytes_down` (server to client) and `lost`
    (answers) count.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._lock = threading.Lock()
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._corrupt: Callable[[bytes], bytes] | None = None
        self._left: int | None = None
        self._unheard = b""
        self._losses = 0
        self._doomed: set[socket.socket] = set()  # clients that will not hear the next answer
        [self.port] = free_ports(1)  # and not one that an outgoing connection could take
        self.connections = 0
        self.bytes_down = 0
        self.lost = 0
        self._listen()

    @property
    def address(self) -> str:
        """host:port for the client; stays the same over stop and resume."""
        return f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Cut every connection and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() does not
            listener.close()
        self.cut()

    def stall(self) -> None:
        """Accept and keep connections, but forward nothing either way."""
        self._flowing.clear()

    def corrupt(self, change: Callable[[bytes], bytes]) -> None:
        """Let `change` alter each chunk of server-to-client bytes."""
        self._corrupt = change

    def drop_after(self, count: int) -> None:
        """After so many more server-to-client bytes, cut that connection; once."""
        with self._lock:
            self._left = count

    def lose_answers(self, asked: bytes, times: int = 1) -> None:
        """What is asked with these bytes in it is done, and its connection cut before the answer.

        Of a protocol that says in one segment what it asks for, and one thing at a time.
        """
        with self._lock:
            self._unheard, self._losses = asked, times

    def cut(self) -> None:
        """Reset every connection that is open now."""
        with self._lock:
            doomed = list(self._open)
            self._open.clear()
        for end in doomed:
            _reset(end)

    def resume(self) -> None:
        """Forward faithfully again, and listen again if stopped."""
        with self._lock:
            self._corrupt = None
            self._left = None
            self._losses = 0
            stopped = self._listener is None
        self._flowing.set()
        if stopped:
            self._listen()

    def close(self) -> None:
        self.stop()
        self._flowing.set()  # lets stalled threads see that their sockets are gone

    def _listen(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target, timeout=10)
            except OSError:
                _reset(client)
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                stopped = self._listener is not listener
                self.connections += 1
                self._open |= {client, server}
            if stopped:
                self.cut()
                return
            for source, sink, down in ((client, server, False), (server, client, True)):
                pump = threading.Thread(target=self._pump, args=(source, sink, down), daemon=True)
                pump.start()

    def _pump(self, source: socket.socket, sink: socket.socket, down: bool) -> None:
        try:
            while chunk := source.recv(65536):
                self._flowing.wait()
                whole = True
                if down:
                    if sink in self._doomed:
                        break
                    chunk, whole = self._downward(chunk)
                else:
                    self._upward(chunk, source)
                sink.sendall(chunk)
                if not whole:
                    break
            else:
                self._flowing.wait()
                sink.shutdown(socket.SHUT_WR)  # the other direction may go on
                return
        except OSError:
            pass
        with self._lock:
            self._open -= {source, sink}
            self._doomed -= {source, sink}
        _reset(source)
        _reset(sink)

    def _upward(self, chunk: bytes, client: socket.socket) -> None:
        with self._lock:
            if self._losses and self._unheard in chunk:
                self._losses -= 1
                self.lost += 1
                self._doomed.add(client)

    def _downward(self, chunk: bytes) -> tuple[bytes, bool]:
        """What to pass on to the client, and whether the connection goes on after it."""
        change = self._corrupt
        if change is not None:
            chunk = change(chunk)
        with self._lock:
            whole = self._left is None or self._left > len(chunk)
            if self._left is not None:
                chunk = chunk[: self._left]
                self._left = self._left - len(chunk) if whole else None
            self.bytes_down += len(chunk)
        return chunk, whole


def _reset(end: socket.socket) -> None:
    """Close with a reset, not an orderly end; wakes a thread that reads from it."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    end.close()
