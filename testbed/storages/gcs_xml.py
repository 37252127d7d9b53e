"""Google's XML API, as far as object_store speaks it, in front of fake-gcs-server's JSON API.

    python -m testbed.storages.gcs_xml --port 4443 --upstream http://127.0.0.1:4444

One endpoint serves both: what asks for the JSON API goes on unchanged. Pages: Google's "XML API"
reference (objects, multipart uploads, preconditions) and "List objects".
"""

import json
import re
import threading
import uuid
from datetime import datetime
from email.utils import format_datetime
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

from testbed.faults import FaultyStore
from testbed.storages.translators import run

Headers = list[tuple[str, str]]
Answer = tuple[int, Headers, bytes]

_JSON = ("/storage/v1/", "/upload/", "/download/", "/batch/", "/b/")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_EMPTY: Answer = (204, [], b"")
_MISSING: Answer = 404, [], b"<Error><Code>NoSuchKey</Code></Error>"


class GcsXml(FaultyStore):
    """Each answer is made of one or more of the JSON API's."""

    def __init__(self, upstream: str, port: int = 0) -> None:
        super().__init__(upstream, port)
        self._parts: dict[str, dict[int, bytes]] = {}
        self._guard = threading.Lock()

    def forward(self, method: str, path: str, headers: Headers, body: bytes) -> Answer:
        if path.startswith(_JSON):
            return super().forward(method, path, headers, body)
        url = urlsplit(path)
        query = {name: one[0] for name, one in parse_qs(url.query, keep_blank_values=True).items()}
        bucket, _, name = url.path.lstrip("/").partition("/")
        name = unquote(name)
        given = {key.lower(): value for key, value in headers}
        if not name:
            return self._list(bucket, query)
        if "uploads" in query or "uploadId" in query:
            return self._multipart(method, bucket, name, query, given, body)
        if method == "PUT":
            return self._put(bucket, name, given, body)
        object_path = f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}"
        if method == "DELETE":
            status, _, content = self._ask("DELETE", object_path)
            return _EMPTY if status in (200, 204) else (status, [], content)
        return self._get(method, object_path, given)

    def _ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        headers = [("Host", self.upstream), ("Content-Type", "application/octet-stream")]
        return super().forward(method, path, headers, body)

    def _put(self, bucket: str, name: str, given: dict[str, str], body: bytes) -> Answer:
        query = {"uploadType": "media", "name": name}
        if (generation := given.get("x-goog-if-generation-match")) is not None:
            query["ifGenerationMatch"] = generation
        path = f"/upload/storage/v1/b/{bucket}/o?{urlencode(query)}"
        status, _, content = self._ask("POST", path, body)
        if status != 200:
            return status, [], content
        return 200, _described(json.loads(content)), b""

    def _multipart(
        self,
        method: str,
        bucket: str,
        name: str,
        query: dict[str, str],
        given: dict[str, str],
        body: bytes,
    ) -> Answer:
        with self._guard:
            if "uploads" in query:
                upload = uuid.uuid4().hex
                self._parts[upload] = {}
                return _xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
            upload = query["uploadId"]
            if method == "PUT":
                self._parts[upload][int(query["partNumber"])] = body
                return 200, [("ETag", f'"{query["partNumber"]}"')], b""
            parts = self._parts.pop(upload, {})
        if method == "DELETE":
            return _EMPTY
        whole = b"".join(parts[number] for number in sorted(parts))
        status, headers, content = self._put(bucket, name, given, whole)
        if status != 200:
            return status, headers, content
        tag = dict(headers)["ETag"]
        return _xml("CompleteMultipartUploadResult", f"<ETag>{escape(tag)}</ETag>", headers)

    def _get(self, method: str, object_path: str, given: dict[str, str]) -> Answer:
        status, _, content = self._ask("GET", object_path)
        if status != 200:
            return _MISSING
        found = json.loads(content)
        headers, size = _described(found), int(found["size"])
        if method == "HEAD":
            return 200, [*headers, ("Content-Length", str(size))], b""
        # By its generation: it may be another by now.
        data_path = f"{object_path}?alt=media&generation={found['generation']}"
        status, _, data = self._ask("GET", data_path)
        if status != 200:  # deleted in between
            return _MISSING
        asked = _RANGE.fullmatch(given.get("range", ""))
        if asked is None:
            return 200, headers, data
        if asked[1]:
            first, last = int(asked[1]), min(int(asked[2] or size - 1), size - 1)
        else:
            first, last = max(0, size - int(asked[2])), size - 1
        if first >= size:
            return 416, headers, b""
        headers.append(("Content-Range", f"bytes {first}-{last}/{size}"))
        return 206, headers, data[first : last + 1]

    def _list(self, bucket: str, query: dict[str, str]) -> Answer:
        asked = {
            "maxResults": query.get("max-keys", "1000"),
            "prefix": query.get("prefix", ""),
            "delimiter": query.get("delimiter", ""),
            "startOffset": query.get("start-after", ""),
            "pageToken": query.get("continuation-token", ""),
        }
        given = urlencode({name: value for name, value in asked.items() if value})
        status, _, content = self._ask("GET", f"/storage/v1/b/{bucket}/o?{given}")
        if status != 200:
            return status, [], content
        found = json.loads(content)
        after = asked["startOffset"]
        parts = [
            f"<Contents><Key>{escape(one['name'])}</Key><Size>{one['size']}</Size>"
            f"<LastModified>{one['updated']}</LastModified><ETag>{escape(one['etag'])}</ETag>"
            f"<Generation>{one['generation']}</Generation></Contents>"
            for one in found.get("items", ())
            if not after or one["name"] > after
        ]
        parts += [
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
            for one in found.get("prefixes", ())
        ]
        token = found.get("nextPageToken", "")
        if token:
            parts.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        parts.append(f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>")
        return _xml("ListBucketResult", "".join(parts))


def _described(found: dict[str, str]) -> Headers:
    updated = datetime.fromisoformat(found["updated"])
    return [
        ("ETag", '"{}"'.format(found["etag"].strip('"'))),
        ("x-goog-generation", str(found["generation"])),
        ("Last-Modified", format_datetime(updated).replace("+0000", "GMT")),
    ]


def _xml(name: str, inner: str, headers: Headers | None = None) -> Answer:
    text = f'<?xml version="1.0" encoding="UTF-8"?><{name}>{inner}</{name}>'
    return 200, [*(headers or []), ("Content-Type", "application/xml")], text.encode()


if __name__ == "__main__":
    run(GcsXml)
