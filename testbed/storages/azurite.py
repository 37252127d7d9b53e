"""`Azurite`: Microsoft's emulator of Azure Blob, in memory, behind `azure_blob`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyarrow.fs as pafs

from testbed.process import Process, Server, free_ports, wait_for
from testbed.storages.programs import npm_program

__all__ = ["Azurite"]

_ACCOUNT = "devstoreaccount1"
# Azurite's own, which its documentation prints.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Azurite(Server):
    """`with Azurite() as azure:`; everything is gone after. It checks signatures."""

    def __init__(self, container: str = "lake") -> None:
        self.container = container
        self.account = _ACCOUNT
        self.key = _KEY

    def start(self) -> None:
        program = npm_program("azurite", "3.35.0", "azurite-blob")
        port, upstream = free_ports(2)
        self._directory = Path(tempfile.mkdtemp(prefix="pulsar-lake-azure-"))
        self.address = f"http://127.0.0.1:{port}"
        # Without the first of these it calls home.
        command = [str(program), "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
        command += ["--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(upstream)]
        front = [sys.executable, "-m", "testbed.storages.azure_blob", "--port", str(port)]
        front += ["--upstream", f"http://127.0.0.1:{upstream}"]
        self._servers = [
            Process("azurite", command, self._directory / "azurite.log"),
            Process("azure-blob", front, self._directory / "azure-blob.log"),
        ]
        for one in self._servers:
            one.spawn()
        try:
            wait_for("Azurite", self._answers, self._servers, timeout=60)
            self.filesystem().create_dir(self.container)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for one in self._servers:
            one.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def filesystem(self) -> pafs.FileSystem:
        """pyarrow's own: another client than the product's."""
        authority = urlsplit(self.address).netloc
        return pafs.AzureFileSystem(
            self.account,
            account_key=self.key,
            blob_storage_authority=authority,
            blob_storage_scheme="http",
            dfs_storage_authority=authority,
            dfs_storage_scheme="http",
        )

    @property
    def endpoint(self) -> str:
        """Where a `FaultyStore` goes in front of."""
        return self.address

    @property
    def uri(self) -> str:
        """The container as a storage URI."""
        return f"abfss://{self.container}@{self.account}.dfs.core.windows.net"

    @property
    def storage_options(self) -> dict[str, str]:
        """As `[storage.options]` takes them."""
        return self.options_at(self.endpoint)

    def options_at(self, endpoint: str) -> dict[str, str]:
        """The same options at another endpoint, e.g. a `FaultyStore` in front of this server."""
        return {
            "endpoint_url": f"{endpoint}/{self.account}",
            "account_key": self.key,
            "allow_http": "true",
        }

    def keys(self, prefix: str = "") -> list[str]:
        """Every object below a prefix, sorted."""
        selector = pafs.FileSelector(self.container, recursive=True)
        found = self.filesystem().get_file_info(selector)
        names = (one.path.partition("/")[2] for one in found if one.is_file)
        return sorted(name for name in names if name.startswith(prefix))

    def _answers(self) -> bool:
        try:
            return httpx.get(self.address, timeout=2).status_code < 500
        except httpx.TransportError:
            return False
