"""The wheel in an empty virtual environment, on a machine with Java and neither Maven nor a JDK."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from offloader.config import Config
from spark_ext.session.jars import listed, session_jars
from tests.spark.conftest import TOTAL, Orders, orders
from tests.support.maven_repository import MavenRepository
from tests.support.running import run_program

__all__ = ["orders"]

WANTED = listed(("s3",))
"""What a storage on S3 needs, or a storage that is not known yet."""

ROOT = Path(__file__).parents[2]
SOURCES = ("reader", "spark_ext", "offloader", "pyspark_pulsar_lake.py")
# What Spark's scripts call, and Java without its compiler.
TOOLS = ("java", "bash", "env", "dirname", "readlink", "ps", "uname", "id", "nice", "cat")


@dataclass(frozen=True, slots=True)
class User:
    """Who has installed the wheel, and nothing else of ours."""

    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """``pulsar-lake …`` in a folder of the user's own; ``more``: variables beside."""
        return run_program(
            [str(self.folder / "venv" / "bin" / "pulsar-lake"), *arguments],
            cwd=self.folder,
            env=self.environment | more,
            timeout=280,
        )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources: what builds it leaves folders beside them."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    (folder / "src").mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / "src" / name, ignore=ignored)
    for name in ("pyspark_pulsar_lake.py", "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "src")
    # Left by an earlier build: not packed.
    stale = folder / "src" / "build" / "lib" / "spark_ext" / "jvm"
    stale.mkdir(parents=True)
    (stale / "pulsar-lake-spark-0123456789abcdef.jar").touch()
    build("-o", str(folder), str(folder / "src"))
    [made] = folder.glob("*.whl")
    return made


def build(*arguments: str, **more: str) -> None:
    command = [str(Path(sys.executable).parent / "uv"), "build", "--wheel"]
    command += ["--no-build-isolation", "--python", sys.executable, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, check=True, capture_output=True, text=True, env=environment | more)


def pip(venv: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "uv"), "pip", *arguments, "--python", str(venv)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def user(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> User:
    folder = tmp_path_factory.mktemp("user")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    locked = ["install", "--require-hashes", "-r", str(ROOT / "deploy" / "requirements.lock")]
    # What `make setup` has fetched is enough, as a rule.
    if pip(venv, *locked, "--offline").returncode:
        pip(venv, *locked).check_returncode()
    pip(venv, "install", "--no-deps", str(wheel)).check_returncode()
    checked = pip(venv, "check")
    assert checked.returncode == 0, checked.stderr
    tools = folder / "tools"
    tools.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found, name
        (tools / name).symlink_to(found)
    environment = {"PATH": f"{venv / 'bin'}:{tools}", "HOME": str(folder), "LANG": "C.UTF-8"}
    environment["PULSAR_LAKE_CACHE"] = str(folder / "cache")
    # Kernels, which test_kernel_cache.py compiles from nothing, are those of the same sources.
    environment["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return User(folder, environment)


def test_what_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        [shim] = (name for name in names if name.endswith(".jar"))
        assert shim == f"spark_ext/jvm/{session_jars(())[0].name}"
        (wheel.parent / "shim.jar").write_bytes(packed.read(shim))
        [metadata] = (packed.read(one).decode() for one in names if one.endswith("METADATA"))
    with zipfile.ZipFile(wheel.parent / "shim.jar") as jar:
        assert "io/pulsarlake/spark/catalog/PulsarCatalog.class" in jar.namelist()
    assert {name.split("/")[0] for name in names} == {*SOURCES, "pulsar_lake-0.1.0.dist-info"}
    for needed in (
        "spark_ext/session/jars/jars.lock",
        "spark_ext/log4j2.properties",
        "offloader/web/static/index.html",
        "reader/py.typed",
        "pulsar_lake-0.1.0.dist-info/licenses/LICENSE",
    ):
        assert needed in names
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "\n# pulsar-lake\n" in metadata


def test_no_wheel_without_the_shim(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build("-o", str(tmp_path), str(wheel.parent / "src"), PATH=str(tmp_path), JAVA_HOME="")
    assert "javac is missing" in caught.value.stderr
    assert not list(tmp_path.glob("*.whl"))


def test_without_a_network_one_line_says_what_to_do(user: User) -> None:
    done = user.run(
        "setup", PULSAR_LAKE__SPARK__JARS_MIRROR="http://127.0.0.1:9/", PULSAR_LAKE_CACHE="none"
    )
    folder = user.folder / "none" / "jars"
    first, error = done.stderr.splitlines()
    assert first == f"pulsar-lake: fetching {len(WANTED)} jars for Spark (once) ..."
    assert error.startswith(f"error: {len(WANTED)} of {len(WANTED)} jars for Spark could not")
    assert f"put them into {folder}: `pulsar-lake setup --list` lists them" in error
    assert done.returncode == 1
    done = user.run("setup", "--list", PULSAR_LAKE_CACHE="none")
    assert done.returncode == 0
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["missing", jar.sha256, jar.coordinates, jar.file] for jar in WANTED
    ]
    assert str(folder) in done.stderr


@pytest.mark.timeout(600)  # the cluster, a session without any cache
def test_java_is_enough(user: User, orders: Orders, lake_config: Config) -> None:
    """A topic with rows in the table, on bookies and in open ledgers; no jar is in the cache."""
    options = "".join(
        f'{name} = "{value}"\n' for name, value in lake_config.storage.options.items()
    )
    (user.folder / "lake.toml").write_text(
        f'[pulsar]\nservice_url = "{lake_config.pulsar.service_url}"\n'
        f'admin_url = "{lake_config.pulsar.admin_url}"\n'
        f'[storage]\nuri = "{lake_config.storage.uri}"\n[storage.options]\n{options}'
        '[spark]\nmaster = "local[2]"\n'
    )
    query = f"SELECT count(*) AS n, sum(id) AS ids FROM {orders.table}"
    here = dict(zip((jar.file for jar in WANTED), session_jars(("s3",))[1:], strict=True))
    with MavenRepository(
        {jar.repository_path: here[jar.file].read_bytes() for jar in WANTED}
    ) as repository:
        done = user.run(
            *("sql", query, "--format", "json", "--config", "lake.toml"),
            PULSAR_LAKE__SPARK__JARS_MIRROR=repository.url,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [{"n": TOTAL, "ids": sum(range(TOTAL))}]
    assert f"fetching {len(WANTED)} jars for Spark (once)" in done.stderr
    assert len(repository.gets) == len(WANTED)
