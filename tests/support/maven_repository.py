"""A Maven repository on loopback: what fetches jars is tested with the real Ivy."""

import base64
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self
from urllib.parse import urlsplit


class MavenRepository:
    """Serves files by their path; as a proxy, those of any host."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.gets: list[str] = []
        """What was asked for, but for requests that only ask whether it is there."""
        self.login = ""
        """``user:password`` that a proxy asks for."""
        self.cut = ""
        """The path of a file that breaks off."""
        repository = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                wanted = base64.b64encode(repository.login.encode()).decode()
                if repository.login and self.headers["Proxy-Authorization"] != f"Basic {wanted}":
                    self.send_response(407)
                    self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                path = urlsplit(self.path).path.lstrip("/")  # a proxy is asked for a whole URL
                content = repository.files.get(path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                if self.command == "GET":
                    repository.gets.append(self.path)
                    if path == repository.cut:
                        content = (content or b"")[:9]
                        self.close_connection = True
                    self.wfile.write(content or b"")

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.address}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def names(self) -> list[str]:
        """The artifacts that were asked for, sorted."""
        return sorted(path.split("/")[-1].split("-")[0] for path in self.gets)
