"""All three clients of the storage find the same identity: that of Amazon's usual chain."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reader.config import StorageConfig
from reader.storage import open_storage
from spark_ext.session.jars import class_path, session_jars
from spark_ext.session.jars.shim import java_tool, pyspark_jars
from testbed.serving import Asked, HttpAnswer, answering

_PYTHON = """
import sys
from contextlib import suppress
from deltalake import DeltaTable
from reader.config import StorageConfig
from reader.storage import open_storage
options = dict(one.split("=", 1) for one in sys.argv[1:])
storage = open_storage(StorageConfig(uri="s3://delta-rs", options=options))
with suppress(OSError):
    DeltaTable("s3://delta-rs/t", storage_options=storage.delta_options() | {"max_retries": "0"})
filesystem, root = open_storage(StorageConfig(uri="s3://pyarrow", options=options)).filesystem()
with suppress(OSError):
    filesystem.get_file_info(root + "/t")
"""
CASES = {
    "options": {},
    "environment": {
        "AWS_ACCESS_KEY_ID": "ENVIRONMENT",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "environment-session",
    },
    "profile": {"AWS_PROFILE": "lake"},
}
CREDENTIALS = """[default]
aws_access_key_id = WRONG
aws_secret_access_key = x
[lake]
aws_access_key_id = PROFILE
aws_secret_access_key = secret
aws_session_token = profile-session
"""
Seen = dict[str, set[tuple[str, str]]]


@contextmanager
def store() -> Iterator[tuple[str, Seen]]:
    """A store that refuses everything, and each bucket's identities: key and session token."""
    seen: Seen = defaultdict(set)

    def answer(asked: Asked) -> HttpAnswer:
        found = re.search("Credential=([^/]+)/", asked.headers.get("Authorization", ""))
        key = found[1] if found else "anonymous"
        token = asked.headers.get("x-amz-security-token", "")
        seen[asked.path.split("/")[1]].add((key, token))
        body = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
        return 403, body, {"Content-Type": "application/xml"}

    with answering(answer) as url:
        yield url, seen


def options_of(case: str, url: str) -> dict[str, str]:
    options = {"endpoint_url": url, "region": "us-east-1", "allow_http": "true"}
    if case == "options":
        options |= {
            "access_key_id": "OPTIONS",
            "secret_access_key": "secret",
            "session_token": "options-session",
        }
    return options


def run(command: list[str], folder: Path, case: str) -> str:
    """Run a command with the environment of a case, and return its errors."""
    (folder / "credentials").write_text(CREDENTIALS)
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env |= {
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
        "AWS_CONFIG_FILE": str(folder / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    } | CASES[case]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, timeout=120)
    return done.stderr.decode()[-2000:]


@pytest.mark.parametrize("case", CASES)
def test_python_shows_the_same_identity(case: str, tmp_path: Path) -> None:
    with store() as (url, seen):
        pairs = [f"{name}={value}" for name, value in options_of(case, url).items()]
        errors = run([sys.executable, "-c", _PYTHON, *pairs], tmp_path, case)
    identity = {(case.upper(), f"{case}-session")}
    assert seen == {"delta-rs": identity, "pyarrow": identity}, errors


def test_hadoop_shows_the_same_identity(tmp_path: Path) -> None:
    """As Spark would list two folders, of which one bucket's settings have an identity."""
    cases = ("options", "profile")
    with store() as (url, seen):
        conf = {
            name.replace("spark.hadoop.fs.s3a.", f"fs.s3a.bucket.{case}."): value
            for case in cases
            for name, value in open_storage(
                StorageConfig(uri=f"s3://{case}", options=options_of(case, url))
            )
            .spark_conf()
            .items()
        }
        for case in cases:
            conf[f"fs.s3a.bucket.{case}.attempts.maximum"] = "1"
            conf[f"fs.s3a.bucket.{case}.retry.limit"] = "0"
        rows = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in conf.items()
        )
        (tmp_path / "core-site.xml").write_text(f"<configuration>{rows}</configuration>")
        (tmp_path / "log4j2.properties").write_text("rootLogger.level=off\n")
        java = java_tool("java", "")
        jars = f"{pyspark_jars()}/*"
        path = os.pathsep.join([str(tmp_path), class_path(session_jars(("s3",))), jars])
        command = [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path]
        command += ["org.apache.hadoop.fs.FsShell", "-ls", *(f"s3a://{case}/t" for case in cases)]
        errors = run(command, tmp_path, "profile")
    assert seen == {case: {(case.upper(), f"{case}-session")} for case in cases}, errors
