"""What Azurite lacks of the Blob API: a listing's `startFrom`, which delta-rs asks for.

    python -m testbed.storages.azure_blob --port 10000 --upstream http://127.0.0.1:10001

Page: "List Blobs" of the Blob service's REST API.
"""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

from testbed.faults import FaultyStore
from testbed.storages.translators import run

_BLOB = re.compile(rb"<Blob>.*?</Blob>", re.DOTALL)
_NAME = re.compile(rb"<Name>(.*?)</Name>", re.DOTALL)


class AzureBlob(FaultyStore):
    """All else goes on unchanged."""

    def forward(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        status, found, content = super().forward(method, path, headers, body)
        query = parse_qs(urlsplit(path).query)
        first = query.get("startFrom", [""])[0]
        if first and query.get("comp") == ["list"] and status == 200:

            def kept(match: re.Match[bytes]) -> bytes:
                name = _NAME.search(match[0])
                assert name is not None
                return match[0] if unescape(name[1].decode()) >= first else b""

            content = _BLOB.sub(kept, content)
        return status, found, content


if __name__ == "__main__":
    run(AzureBlob)
