"""`Versity`: an S3 server over a directory, versitygw. Its conditional puts are one step each."""

import httpx

from testbed.programs import go_program
from testbed.s3 import S3


class Versity(S3):
    """As `S3`, which is moto: with another server."""

    key = "k3y-of-versitygw"

    def _command(self) -> list[str]:
        program = go_program("github.com/versity/versitygw", "v1.8.0", "cmd/versitygw")
        data = self._directory / "data"
        data.mkdir()
        command = [str(program), "--access", self.key, "--secret", self.key]
        command += ["--region", self.region, "--port", f"127.0.0.1:{self.port}"]
        return [*command, "posix", str(data)]

    def _answers(self) -> bool:
        try:
            return httpx.get(self.endpoint, timeout=2).status_code < 500
        except httpx.TransportError:
            return False
