"""HTTP answers of a bounded size, in bounded time: who answers may be anybody.

A few packed bytes grow large. And httpx's timeouts are for each read: who sends a byte now and then
keeps them all.
"""

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

import httpx

_PACKED = (b"content-encoding", b"content-length", b"transfer-encoding")
_GZIP = 16 + zlib.MAX_WBITS  # zlib's name for it


class TooLargeError(httpx.HTTPError):
    """An answer beyond its bound, of which the rest was not read."""


class _Deadline:
    """``seconds`` from when it is first asked for."""

    __slots__ = ("seconds", "until")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.until: float | None = None

    def left(self) -> float:
        """Seconds; 0 or less once it has passed."""
        now = time.monotonic()
        if self.until is None:
            self.until = now + self.seconds
        return self.until - now


_deadline: ContextVar[_Deadline] = ContextVar("deadline")
"""Of the request that this thread is at: a connection is read for one after the other."""


def bounded_send(
    http: httpx.Client, asked: httpx.Request, *, most: int, seconds: float
) -> httpx.Response:
    """The whole answer, of at most ``most`` bytes as sent and unpacked; follows no redirection.

    ``seconds``: from when the request was sent until the answer's last byte. All that is asked with
    ``http`` is to be asked by this.

    Raises TooLargeError, and other errors of httpx as its ``send`` does.
    """
    deadline = _Deadline(seconds)
    before = _deadline.set(deadline)
    try:
        return _send(http, asked, most)
    except httpx.ReadTimeout as error:
        if deadline.left() > 0:
            raise
        late = f"the answer is not whole after {seconds:g} s"
        raise httpx.ReadTimeout(late, request=asked) from error
    finally:
        _deadline.reset(before)


def _send(http: httpx.Client, asked: httpx.Request, most: int) -> httpx.Response:
    asked.headers["Accept-Encoding"] = "gzip"
    asked.extensions["trace"] = _watch
    answer = http.send(asked, stream=True, follow_redirects=False)
    try:
        sent = _bounded(answer.iter_raw(), most)
        content = bytearray()  # a list of small parts is many times their size
        for part in _bounded(_unpacked(answer, sent, most + 1), most):
            content += part
    finally:
        answer.close()
    headers = [one for one in answer.headers.raw if one[0].lower() not in _PACKED]
    return httpx.Response(
        answer.status_code, headers=headers, content=bytes(content), request=asked
    )


def _watch(event: str, told: Mapping[str, Any]) -> None:
    """Each read of a new connection keeps the deadline, those of headers too.

    https://www.encode.io/httpcore/extensions/#trace
    """
    if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
        stream = told["return_value"]
        stream.read = partial(_read_in_time, stream.read)


def _read_in_time(
    read: Callable[[int, float], bytes], max_bytes: int, timeout: float | None = None
) -> bytes:
    left = _deadline.get().left()
    if left <= 0:
        raise httpx.ReadTimeout("timed out")
    return read(max_bytes, left if timeout is None else min(left, timeout))


def _bounded(parts: Iterable[bytes], most: int) -> Iterator[bytes]:
    size = 0
    for part in parts:
        size += len(part)
        if size > most:
            raise TooLargeError(f"the answer is larger than {most >> 20} MiB")
        yield part


def _unpacked(answer: httpx.Response, sent: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Parts of at most ``most`` bytes; httpx would unpack all that came at once."""
    packed = answer.headers.get("Content-Encoding", "identity").lower()
    if packed == "identity":
        yield from sent
    elif packed == "gzip":
        inflating = zlib.decompressobj(_GZIP)
        try:
            for part in sent:
                yield inflating.decompress(part, most)
                if inflating.unused_data:  # zlib would keep all that follows
                    raise httpx.DecodingError("more than the packed answer", request=answer.request)
        except zlib.error as error:
            raise httpx.DecodingError(str(error), request=answer.request) from error
        if not inflating.eof:
            raise httpx.DecodingError("the packed answer ends early", request=answer.request)
    else:
        raise httpx.DecodingError(f"packed as {packed}", request=answer.request)
