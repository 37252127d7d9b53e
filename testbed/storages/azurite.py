"""`Azurite`: Microsoft's emulator of Azure Blob, in memory, behind `azure_blob`."""

from urllib.parse import urlsplit

import httpx
import pyarrow.fs as pafs

from testbed.process import Process, ProcessServer, free_ports
from testbed.programs import npm_program
from testbed.storages.translators import translator

_ACCOUNT = "devstoreaccount1"
# Azurite's own, which its documentation prints.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Azurite(ProcessServer):
    """`with Azurite() as azure:`; everything is gone after. It checks signatures."""

    kind = "azurite"

    def __init__(self, container: str = "lake") -> None:
        self.container = container
        self.account = _ACCOUNT
        self.key = _KEY

    def _prepared(self) -> list[Process]:
        program = npm_program("azurite", "3.35.0", "azurite-blob")
        port, upstream = free_ports(2)
        self.address = f"http://127.0.0.1:{port}"
        # Without the first of these it calls home.
        command = [str(program), "--disableTelemetry", "--skipApiVersionCheck", "--silent"]
        command += ["--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(upstream)]
        front = self._directory / "azure-blob.log"
        return [
            Process("azurite", command, self._directory / "azurite.log"),
            translator("testbed.storages.azure_blob", port, upstream, front),
        ]

    def _fill(self) -> None:
        self.filesystem().create_dir(self.container)

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
