"""HTTP answers of a bounded size: who answers may be anybody, and a few packed bytes grow large."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

import httpx

__all__ = ["TooLargeError", "bounded_send"]

_PACKED = (b"content-encoding", b"content-length", b"transfer-encoding")
_GZIP = 16 + zlib.MAX_WBITS  # zlib's name for it


class TooLargeError(httpx.HTTPError):
    """An answer beyond its bound, of which the rest was not read."""


def bounded_send(http: httpx.Client, asked: httpx.Request, most: int) -> httpx.Response:
    """The whole answer, of at most ``most`` bytes as sent and unpacked; follows no redirection.

    Raises TooLargeError, and other errors of httpx as its ``send`` does.
    """
    asked.headers["Accept-Encoding"] = "gzip"
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
