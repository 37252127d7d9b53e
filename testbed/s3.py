"""An S3 server (moto) in a process of its own, so that it does not share the tests' GIL."""

import sys
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config

from testbed.process import Process, ProcessServer, free_ports


class S3(ProcessServer):
    """`with S3() as s3:` or `start()` … `stop()`; everything is in memory and gone after."""

    kind = "s3"
    region = "us-east-1"
    key = "testing"

    def __init__(self, bucket: str = "lake") -> None:
        self.bucket = bucket
        self.port = 0

    def _prepared(self) -> list[Process]:
        [self.port] = free_ports(1)
        return [Process("s3", self._command(), self._directory / "s3.log")]

    def _command(self) -> list[str]:
        program = Path(__file__).parent / "storages" / "moto_s3.py"
        # -P: moto imports nothing that lies beside it.
        return [sys.executable, "-P", str(program), "-H", "127.0.0.1", "-p", str(self.port)]

    def _fill(self) -> None:
        self.client().create_bucket(Bucket=self.bucket)

    @property
    def pid(self) -> int | None:
        return self._processes[0].pid

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def uri(self) -> str:
        """The bucket as a storage URI."""
        return f"s3://{self.bucket}"

    @property
    def storage_options(self) -> dict[str, str]:
        """As `[storage.options]` takes them."""
        return self.options_at(self.endpoint)

    def options_at(self, endpoint: str) -> dict[str, str]:
        """The same options at another endpoint, e.g. a `FaultyStore` in front of this server."""
        return {
            "endpoint_url": endpoint,
            "access_key_id": self.key,
            "secret_access_key": self.key,
            "region": self.region,
            "allow_http": "true",
        }

    def client(self, endpoint: str | None = None, attempts: int = 3) -> Any:
        """A boto3 client of the server, or of a proxy in front of it.

        boto3 makes its methods at run time, so there is no type for it.
        """
        return boto3.client(
            "s3",
            endpoint_url=endpoint or self.endpoint,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.key,
            region_name=self.region,
            config=Config(retries={"total_max_attempts": attempts}),
        )

    def keys(self, prefix: str = "") -> list[str]:
        """Every object below a prefix, sorted."""
        pages = self.client().get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.bucket, Prefix=prefix)
        return sorted(item["Key"] for page in found for item in page.get("Contents", []))

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.endpoint}/moto-api/", timeout=2).status_code < 500
        except httpx.TransportError:
            return False
