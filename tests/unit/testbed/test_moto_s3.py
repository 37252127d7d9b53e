"""moto as the tests' S3."""

import httpx

from testbed.s3 import S3

SIGNATURE = "Q/w3x/e9/w/rJ8nH4k2Zt5LmXcV="
"""Of version 2, with four slashes."""


def test_a_signature_with_four_slashes_is_for_s3() -> None:
    with S3() as s3, httpx.Client(headers={"Authorization": f"AWS {s3.key}:{SIGNATURE}"}) as client:
        url = f"{s3.endpoint}/{s3.bucket}/one"
        assert client.put(url, content=b"1").status_code == 200
        assert client.get(url).content == b"1"
