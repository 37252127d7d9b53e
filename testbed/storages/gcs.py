"""`Gcs`: fake-gcs-server, in memory, behind a process that translates (`gcs_xml`)."""

import httpx

from testbed.process import Process, ProcessServer, free_ports
from testbed.programs import go_program
from testbed.storages.translators import translator


class Gcs(ProcessServer):
    """`with Gcs() as gcs:`; everything is gone after. An emulator: it asks nobody who they are."""

    kind = "gcs"

    def __init__(self, bucket: str = "lake") -> None:
        self.bucket = bucket

    def _prepared(self) -> list[Process]:
        program = go_program("github.com/fsouza/fake-gcs-server", "v1.56.1")
        self.port, upstream = free_ports(2)
        command = [str(program), "-scheme", "http", "-host", "127.0.0.1", "-port", str(upstream)]
        command += ["-backend", "memory", "-public-host", f"127.0.0.1:{self.port}"]
        command += ["-external-url", self.endpoint, "-log-level", "error"]
        front = self._directory / "gcs-xml.log"
        return [
            Process("gcs", command, self._directory / "gcs.log"),
            translator("testbed.storages.gcs_xml", self.port, upstream, front),
        ]

    def _fill(self) -> None:
        made = httpx.post(f"{self.endpoint}/storage/v1/b?project=lake", json={"name": self.bucket})
        made.raise_for_status()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def uri(self) -> str:
        """The bucket as a storage URI."""
        return f"gs://{self.bucket}"

    @property
    def storage_options(self) -> dict[str, str]:
        """As `[storage.options]` takes them."""
        return self.options_at(self.endpoint)

    def options_at(self, endpoint: str) -> dict[str, str]:
        """The same options at another endpoint, e.g. a `FaultyStore` in front of this server."""
        return {"endpoint_url": endpoint, "anonymous": "true", "allow_http": "true"}

    def keys(self, prefix: str = "") -> list[str]:
        """Every object below a prefix, sorted."""
        found: list[str] = []
        token = ""
        while True:
            asked = {"prefix": prefix, "pageToken": token}
            page = httpx.get(f"{self.endpoint}/storage/v1/b/{self.bucket}/o", params=asked).json()
            found += [one["name"] for one in page.get("items", ())]
            token = page.get("nextPageToken", "")
            if not token:
                return sorted(found)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.endpoint}/storage/v1/b", timeout=2).status_code == 200
        except httpx.TransportError:
            return False
