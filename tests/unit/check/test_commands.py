"""``check`` and ``init`` as commands, against ports that nobody listens at."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from offloader.check import Checklist
from offloader.cli.check import run_checks
from offloader.cli.init import admin_url_of, settings_text
from offloader.config import load_config
from reader.errors import ConfigurationError
from tests.support.running import run_program
from tests.support.terminal import Run

pytestmark = pytest.mark.usefixtures("no_environment")

ROOT = Path(__file__).parents[3]


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """It takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def states(out: str) -> dict[str, str]:
    lines = [line.split(None, 2) for line in out.splitlines()]
    return {name: state for state, name, _ in lines}


def test_nobody_answers(run: Run, tmp_path: Path, closed_port: int) -> None:
    path = tmp_path / "lake.toml"
    path.write_text(
        f"[pulsar]\nadmin_url = 'http://127.0.0.1:{closed_port}'\ntoken = 'very-secret'\n"
        f"service_url = 'pulsar://127.0.0.1:{closed_port}'\n"
        f"[storage]\nuri = '{tmp_path}/lake'\noptions = {{ secret_access_key = 'hush' }}\n"
    )
    patient = ("check", "--config", str(path), "--timeout", "180")
    code, out, err = run(*patient)
    assert code == 1
    found = states(out)
    assert {name: found[name] for name in ("admin", "role", "topics", "bookies", "broker")} == {
        "admin": "failed",
        "role": "skipped",
        "topics": "skipped",
        "bookies": "skipped",
        "broker": "failed",
    }
    assert found["storage"] == found["clocks"] == "ok"
    assert "fix: check pulsar.admin_url and that the broker runs" in out
    assert "\x1b" not in out
    assert not any(secret in out + err for secret in ("very-secret", "hush"))
    code, out, _ = run(*patient, "--format", "json")
    assert code == 1
    again = {one["name"]: one["state"] for one in json.loads(out)}
    other_programs = {"memory": "", "space": ""}  # take some of them, and give it back
    assert again | other_programs == found | other_programs


@pytest.mark.parametrize("place", ["cache", "cache/jars"])
def test_a_folder_of_jars_that_no_session_would_use(
    monkeypatch: pytest.MonkeyPatch, deaf: Path, place: str
) -> None:
    shared = deaf.parent / place
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(deaf.parent / "cache"))
    with Checklist(load_config(deaf), 3.0) as checklist:
        [jars] = (one for one in checklist.checks() if one.name == "jars")
        with pytest.raises(ConfigurationError, match="others may write there"):
            jars.run(lambda _: None)


@pytest.fixture
def deaf(tmp_path: Path, deaf_port: int) -> Path:
    """Settings of a cluster and a bucket behind a port that takes connections and says nothing."""
    path = tmp_path / "lake.toml"
    path.write_text(
        f"[pulsar]\nadmin_url = 'http://127.0.0.1:{deaf_port}'\ntimeout = '1s'\n"
        f"service_url = 'pulsar://127.0.0.1:{deaf_port}'\n[storage]\nuri = 's3://lake/x'\n"
        f"options = {{ endpoint_url = 'http://127.0.0.1:{deaf_port}', allow_http = 'true',"
        " access_key_id = 'k', secret_access_key = 's', region = 'r' }\n"
    )
    return path


_MAIN = "from offloader.cli.app import main; main()"


def test_one_who_never_answers_hangs_nothing(deaf: Path) -> None:
    done = run_program(
        [sys.executable, "-c", _MAIN, "check", "--config", str(deaf), "--timeout", "3"], timeout=240
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    found = states(done.stdout)
    assert found["admin"] == found["broker"] == found["storage"] == "failed"
    # On a busy machine it may not have come to say for what.
    assert re.search(r"^failed +storage +no answer .*within 3 s", done.stdout, re.MULTILINE)
    assert re.search(r"^storage: waiting for .+ \.\.\.$", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("way", ["interrupted", "closed"])
def test_it_ends_at_once_though_a_library_waits(deaf: Path, way: str) -> None:
    """By Ctrl-C, and where nobody reads its output on."""
    command = [sys.executable, "-c", _MAIN, "check", "--config", str(deaf), "--timeout", "600"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        if way == "closed":
            process.stdout.close()
        else:
            said = iter(process.stderr.readline, "")
            assert any(line.startswith("storage: waiting for ") for line in said)
            process.send_signal(signal.SIGINT)
        assert process.wait(240) == (130 if way == "interrupted" else 1)


@pytest.mark.parametrize(("colorless", "colored"), [("", True), ("1", False)])
def test_colours_on_a_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, colorless: str, colored: bool
) -> None:
    path = tmp_path / "lake.toml"
    path.write_text("[pulsar]\nadmin_url = 'http://127.0.0.1:1'\nservice_url = 'pulsar://[::1]:1'")
    monkeypatch.setenv("NO_COLOR", colorless)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, _ = run("check", "--config", str(path))
    assert code == 1
    assert (re.search("\x1b\\[31mfailed ", out) is not None) is colored
    assert ("\x1b" in out) is colored


def on_terminal(arguments: list[str], typed: str) -> tuple[str, int]:
    """What a terminal shows of the command, on which ``typed`` is typed; the exit code."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", _MAIN, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "NO_COLOR": ""},
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        out = b""
        while select.select([ours], [], [], 120)[0]:
            try:
                more = os.read(ours, 65536)
            except OSError:  # it has ended
                break
            if not more:
                break
            out += more
        process.wait(60)
    os.close(ours)
    return out.decode(), process.returncode


# -- init ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service_url", "admin_url"),
    [
        ("pulsar://host:6650", "http://host:8080"),
        ("pulsar://host", "http://host:8080"),
        ("pulsar+ssl://host:6651", "https://host:8443"),
        ("pulsar://a:6650,b:6650", "http://a:8080"),
        ("pulsar://[::1]:6650", "http://[::1]:8080"),
    ],
)
def test_the_admin_is_where_pulsar_has_it(service_url: str, admin_url: str) -> None:
    assert admin_url_of(service_url) == admin_url


def test_a_url_that_is_none() -> None:
    with pytest.raises(ConfigurationError, match="is not where a broker is"):
        admin_url_of("http://host:8080")


def written(storage: str, **more: Any) -> str:
    given: dict[str, Any] = {
        "admin_url": "http://h:8080",
        "topics": ["a/b/*"],
        "options": {},
        **more,
    }
    return settings_text("pulsar://h:6650", storage, **given)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"options": {"endpoint_url": "http://m:9000", "region": "r", "allow_http": "true"}},
        {"token_file": Path("/run/t"), "trust": Path("/etc/ca.pem")},
        {"topics": ['a/b/"c"', "ä/b/*"]},
    ],
)
def test_the_file_says_what_was_given(more: dict[str, Any]) -> None:
    config = load_config(tomllib.loads(written("s3://bucket/a b", **more)))
    assert config.pulsar.service_url == "pulsar://h:6650"
    assert config.pulsar.admin_url == "http://h:8080"
    assert config.storage.uri == "s3://bucket/a b"
    assert config.storage.options == more.get("options", {})
    assert config.offload.topics == more.get("topics", ["a/b/*"])
    assert config.pulsar.token_file == more.get("token_file")
    assert config.pulsar.tls_trust_certs_file == more.get("trust")


def test_every_key_in_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are commented out, too, and with what it says for them."""
    for uri in ("s3://bucket/x", "/var/lake"):
        text = re.sub(r'^# ((?:[a-z_]+|"[^"]+") = .+)$', r"\1", written(uri), flags=re.MULTILINE)
        config = load_config(tomllib.loads(text))
        assert config.pulsar.token_file == Path("/run/secrets/pulsar-token")
        assert config.pulsar.bookies == {"bookie-1": "10.0.0.1:3181"}
    defaults = load_config({})
    found = load_config(tomllib.loads(written("/var/lake")))
    assert found.offload.threshold_bytes == defaults.offload.threshold_bytes
    assert found.offload.max_age == defaults.offload.max_age
    assert found.spark == defaults.spark
    assert (ROOT / "docs" / "example.toml").exists()


def test_a_directory_is_the_same_one_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config(tomllib.loads(written("lake"))).storage.uri == str(tmp_path / "lake")


def init(closed_port: int, storage: Path | str, *more: str) -> list[str]:
    urls = ["--service-url", f"pulsar://127.0.0.1:{closed_port}"]
    urls += ["--admin-url", f"http://127.0.0.1:{closed_port}"]
    return ["init", *urls, "--storage", str(storage), *more]


def test_init_writes_and_checks(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closed_port: int
) -> None:
    patient = partial(run_checks, seconds=180)
    module = import_module("offloader.cli.init")  # not the function
    monkeypatch.setattr(module, "run_checks", patient)
    path = tmp_path / "lake.toml"
    arguments = init(closed_port, tmp_path / "lake", "--output", str(path))
    monkeypatch.setenv("PULSAR_LAKE__PULSAR__TOKEN", "very-secret")
    code, out, _ = run(*arguments)
    assert code == 1, "nobody answers"
    assert f"{path} is written" in out
    assert "failed   admin" in out
    assert "ok       storage" in out
    assert f"pulsar-lake check --config {path}" in out
    assert "very-secret" not in path.read_text() + out
    before = path.read_text()
    code, _, err = run(*arguments)
    assert (code, err) == (
        1,
        f"error: File {path} exists already (--force replaces it, --output names another)\n",
    )
    run(*arguments, "--force", "--topics", "a/b/c")
    assert path.read_text() == before.replace("public/default/*", "a/b/c")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--storage", "/x"], 2, "--service-url: required"),
        (["--service-url", "pulsar://h"], 2, "--storage: required"),
        (["--storage-option", "region"], 2, "write NAME=VALUE"),
        (
            ["--storage-option", "secret_access_key=hush"],
            2,
            "is a secret: set PULSAR_LAKE__STORAGE__OPTIONS__SECRET_ACCESS_KEY",
        ),
        (["--storage-option", "account_key=hush"], 2, "account_key is a secret"),
        (["--storage-option", "endpoint_url=http://u:hush@h"], 1, "must not have a user"),
        (["--storage", "s3://b/\udcff"], 1, "is not UTF-8"),
        (["--service-url", "http://h"], 1, "is not where a broker is"),
        (["--storage", "s3://user:pass@bucket/x"], 1, "must not have a password"),
        (["--storage-option", "regoin=x"], 1, "did you mean region?"),
        (["--topics", "non-persistent://a/b/c"], 1, "non-persistent"),
        (["--output", "/nowhere/lake.toml"], 1, "cannot write /nowhere/lake.toml: No such file"),
    ],
)
def test_init_refuses(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    code: int,
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", None)
    given = {"--service-url": "pulsar://127.0.0.1:1", "--storage": "s3://b/x"}
    if code == 2 and arguments[0] in given:
        given = {}
    given |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    flat = [part for pair in given.items() for part in pair]
    found, _, err = run("init", *flat)
    assert (found, text in " ".join(err.split())) == (code, True), err
    assert "hush" not in err
    assert list(tmp_path.iterdir()) == []


def test_init_asks_on_a_terminal(tmp_path: Path, closed_port: int) -> None:
    path = tmp_path / "lake.toml"
    typed = f"pulsar://127.0.0.1:{closed_port}\n{tmp_path}/lake\n"
    arguments = ["init", "--admin-url", f"http://127.0.0.1:{closed_port}", "--output", str(path)]
    out, code = on_terminal(arguments, typed)
    assert code == 1
    assert "Pulsar's service URL [pulsar://localhost:6650]: " in out
    assert "\x1b[31mfailed " in out
    assert tomllib.loads(path.read_text())["storage"]["uri"] == f"{tmp_path}/lake"
