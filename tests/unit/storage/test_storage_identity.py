"""All three clients of the storage find the same identity: that of Amazon's usual chain."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyspark
import pytest

from reader.config import StorageConfig
from reader.storage import open_storage
from spark_ext.session.jars import class_path, session_jars
from testbed.serving import serving

_DELTA = """
import sys
from deltalake import DeltaTable
from reader.config import StorageConfig
from reader.storage import open_storage
options = dict(one.split("=", 1) for one in sys.argv[1:])
storage = open_storage(StorageConfig(uri="s3://lake", options=options))
DeltaTable("s3://lake/t", storage_options=storage.delta_options() | {"max_retries": "0"})
"""
_ARROW = """
import sys
from reader.config import StorageConfig
from reader.storage import open_storage
options = dict(one.split("=", 1) for one in sys.argv[1:])
filesystem, root = open_storage(StorageConfig(uri="s3://lake", options=options)).filesystem()
filesystem.get_file_info(root + "/t")
"""
CASES = {
    "options": {},
    "environment": {
        "AWS_ACCESS_KEY_ID": "THEKEY",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "the-session",
    },
    "profile": {"AWS_PROFILE": "lake"},
}


@contextmanager
def store() -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """A store that refuses everything, and what identities it saw: key and session token."""
    seen: set[tuple[str, str]] = set()

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            found = re.search("Credential=([^/]+)/", self.headers.get("Authorization", ""))
            key = found[1] if found else "anonymous"
            seen.add((key, self.headers.get("x-amz-security-token", "")))
            body = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
            self.send_response(403)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen


def hadoop(folder: Path, options: dict[str, str]) -> list[str]:
    """A command that lists a folder as Spark would."""
    conf = {
        name.removeprefix("spark.hadoop."): value
        for name, value in open_storage(StorageConfig(uri="s3://lake", options=options))
        .spark_conf()
        .items()
    } | {"fs.s3a.attempts.maximum": "1", "fs.s3a.retry.limit": "0"}
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in conf.items()
    )
    (folder / "core-site.xml").write_text(f"<configuration>{rows}</configuration>")
    (folder / "log4j2.properties").write_text("rootLogger.level=off\n")
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java") or "java"
    jars = f"{Path(pyspark.__file__).parent / 'jars'}/*"
    path = os.pathsep.join([str(folder), class_path(session_jars()), jars])
    shell = "org.apache.hadoop.fs.FsShell"
    return [java, "-XX:TieredStopAtLevel=1", "-cp", path, shell, "-ls", "s3a://lake/t"]


@pytest.mark.parametrize(
    ("client", "case"),
    [
        *((client, case) for client in ("delta-rs", "pyarrow") for case in CASES),
        *(("S3A", case) for case in ("options", "profile")),  # a JVM each
    ],
)
def test_each_client_shows_the_same_identity(client: str, case: str, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = WRONG\naws_secret_access_key = x\n"
        "[lake]\naws_access_key_id = THEKEY\naws_secret_access_key = secret\n"
        "aws_session_token = the-session\n"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env |= {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    } | CASES[case]
    with store() as (url, seen):
        options = {"endpoint_url": url, "region": "us-east-1", "allow_http": "true"}
        if case == "options":
            options |= {
                "access_key_id": "THEKEY",
                "secret_access_key": "secret",
                "session_token": "the-session",
            }
        pairs = [f"{name}={value}" for name, value in options.items()]
        command = {
            "delta-rs": [sys.executable, "-c", _DELTA, *pairs],
            "pyarrow": [sys.executable, "-c", _ARROW, *pairs],
            "S3A": hadoop(tmp_path, options),
        }[client]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, timeout=120)
    assert seen == {("THEKEY", "the-session")}, done.stderr.decode()[-2000:]
