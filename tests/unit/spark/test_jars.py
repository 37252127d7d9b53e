"""Filling the cache of jars: once, whole or not at all, with a clear word when it cannot be."""

from __future__ import annotations

import os
import threading
import zipfile
from pathlib import Path

import pytest

from reader.errors import ConfigurationError, UnavailableError
from spark_ext.session.jars import build, class_path, jars_directory

FAKE_MAVEN = """#!/bin/sh
echo run >> "$CALLS"
for word in "$@"; do
  case "$word" in
    -DoutputDirectory=*) out="${word#*=}" ;;
    --file=*) work="$(dirname "${word#*=}")" ;;
  esac
done
sleep 0.3
touch "$out/delta-1.0.jar" "$out/reactive-streams-1.0.4.jar" "$out/commons-logging-1.2.jar" \
  "$out/netty-common-4.1.jar"
mkdir -p "$work/target" && touch "$work/target/pulsar-lake-spark.jar"
"""


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and tools of the test's own; the file that counts Maven's runs."""
    tools = tmp_path / "bin"
    tools.mkdir()
    script(tools / "mvn", FAKE_MAVEN)
    script(tools / "javac", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def test_it_is_filled_once_without_what_pyspark_ships(calls: Path) -> None:
    lines: list[str] = []
    found = jars_directory(lines.append)
    assert sorted(jar.name for jar in found.iterdir()) == [
        "delta-1.0.jar",
        "pulsar-lake-spark.jar",
        "reactive-streams-1.0.4.jar",
    ]
    assert class_path(found) == f"{found}/*"
    assert jars_directory(lines.append) == found
    assert len(lines) == 1
    assert calls.read_text() == "run\n"


def test_processes_at_the_same_time_wait_for_the_first(calls: Path) -> None:
    threads = [threading.Thread(target=jars_directory, args=(lambda _: None,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls.read_text() == "run\n"


def test_a_failure_leaves_nothing_and_says_why(calls: Path, tmp_path: Path) -> None:
    script(tmp_path / "bin" / "mvn", "#!/bin/sh\necho '[ERROR] no way out'\nexit 1\n")
    with pytest.raises(UnavailableError, match="no way out"):
        jars_directory(lambda _: None)
    assert [one for one in (tmp_path / "cache").iterdir() if one.is_dir()] == []


@pytest.mark.parametrize(("tool", "message"), [("mvn", "Maven is missing"), ("javac", "A JDK")])
def test_a_missing_tool_is_one_clear_line(
    tool: str, message: str, calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin" / tool).unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError, match=message):
        jars_directory(lambda _: None)


def test_a_cache_that_cannot_be_made_is_one_clear_line(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ConfigurationError, match="PULSAR_LAKE_CACHE"):
        jars_directory(lambda _: None)


def test_a_shim_shipped_compiled_is_taken_if_its_sources_are_the_same(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "jvm"
    sources.mkdir()
    (sources / "A.java").write_text("class A {}")
    (tmp_path / "bin" / "javac").unlink()
    shipped = sources / build.shim_name(sources)
    shipped.touch()
    assert (jars_directory(lambda _: None, sources=sources) / shipped.name).exists()
    (sources / "A.java").write_text("class A { int changed; }")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError, match="A JDK"):
        jars_directory(lambda _: None, sources=sources)


def test_the_class_path_jar_names_every_jar_of_pyspark(tmp_path: Path) -> None:
    build.write_class_path_jar(tmp_path / "all.jar")
    with zipfile.ZipFile(tmp_path / "all.jar") as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode()
    assert max(len(line) for line in manifest.splitlines()) <= 72
    joined = manifest.replace("\n ", "")
    assert "spark-catalyst_2.13-4.2.0.jar" in joined
    assert joined.count("file:///") > 200
