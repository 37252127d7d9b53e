"""A configuration reaches other processes whole, and nobody else."""

import os
import signal
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from reader.errors import ConfigurationError
from spark_ext.session.handoff import load_settings, settings_file
from spark_ext.session.jvm import safe_path
from spark_ext.session.settings import LakeConfig

MAPPING = {
    "pulsar": {
        "service_url": "pulsar://broker:6650",
        "token": "s3cret",
        "bookies": {"b-1": "h:1"},
        "timeout": "1500ms",
    },
    "storage": {"uri": "s3://b/p", "options": {"secret_access_key": "k"}},
    "offload": {"topics": ["a/b/c"], "threshold_bytes": "2MB"},
    "query": {"clock_skew": "10m", "cache_dir": "/x"},
    "spark": {"master": "local[1]", "conf": {"spark.a": "b"}},
}


def test_a_mapping_comes_back_with_its_secrets() -> None:
    path = settings_file(MAPPING)
    assert path is not None
    found = load_settings(path)
    assert found == LakeConfig.load(MAPPING)
    assert found.pulsar.token is not None
    assert found.pulsar.token.get_secret_value() == "s3cret"
    assert found.pulsar.timeout == timedelta(seconds=1.5)
    assert found.query.clock_skew == timedelta(minutes=10)


def test_what_code_says_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_LAKE__STORAGE__URI", "s3://elsewhere")
    assert load_settings(settings_file(MAPPING)).storage.uri == "s3://b/p"


def test_it_is_in_no_folder_and_nobody_changes_it() -> None:
    path = Path(settings_file(MAPPING) or "")
    assert not path.stat().st_nlink
    assert path.stat().st_uid == os.getuid()
    for change in (lambda: path.write_text("{}"), lambda: os.truncate(path, 1)):
        with pytest.raises(OSError, match="not permitted"):
            change()
    assert settings_file(LakeConfig.load(MAPPING)) == str(path), "one for equal settings"


def test_a_process_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    program = (
        "import os, signal\n"
        "from spark_ext.session.handoff import settings_file\n"
        f"print(settings_file({MAPPING!r}), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    env = os.environ | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    (path,) = (Path(line) for line in done.stdout.split())
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_such_memory_the_file_is_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    given = MAPPING | {"storage": {"uri": "/another"}}
    path = Path(settings_file(given) or "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert load_settings(str(path)) == LakeConfig.load(given)


def test_workers_look_for_modules_where_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert safe_path(["/usr/bin", "/lib"]) == {"PYTHONSAFEPATH": "1"}
    assert safe_path(["", "/lib"]) == safe_path([str(Path.cwd())]) == {}


def test_a_users_file_stays_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake.toml").write_text('[storage]\nuri = "/data"\n')
    monkeypatch.chdir(tmp_path)
    path = settings_file("lake.toml")
    assert path == str(tmp_path / "lake.toml")
    assert load_settings(path).storage.uri == "/data"


def test_without_a_configuration_the_environment_says_it_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PULSAR_LAKE__STORAGE__URI", "s3://from-environment")
    assert settings_file(None) is None
    assert load_settings(None).storage.uri == "s3://from-environment"


def test_a_file_that_is_gone_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read the settings /proc/1/fd/99999"):
        load_settings("/proc/1/fd/99999")
