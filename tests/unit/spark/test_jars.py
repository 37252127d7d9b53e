"""Filling the cache of jars: once, whole or not at all, with a clear word when it cannot be."""

from __future__ import annotations

import os
import re
import threading
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from reader.errors import ConfigurationError, UnavailableError
from spark_ext.session.jars import build, class_path, warehouse, write_hashes
from spark_ext.session.jars import jars_directory as real_jars_directory

FAKE_MAVEN = """#!/bin/sh
echo run >> "$CALLS"
for word in "$@"; do
  case "$word" in */pom.xml) before="$last" ;; esac
  last="$word"
  case "$word" in
    -DoutputDirectory=*) out="${word#*=}" ;;
    */pom.xml) work="$(dirname "$word")" ;;
  esac
done
[ "$before" = --file ] && [ "$PWD" = "$work" ] && [ -d .mvn ] || exit 1
sleep 0.3
echo delta > "$out/delta-1.0.jar"
touch "$out/reactive-streams-1.0.4.jar" "$out/commons-logging-1.2.jar" \
  "$out/netty-common-4.1.jar"
mkdir -p "$work/target" && touch "$work/target/pulsar-lake-spark.jar"
"""


@pytest.fixture
def hashes(tmp_path: Path) -> Path:
    """Of what the fake Maven gives."""
    jars = tmp_path / "expected"
    jars.mkdir()
    (jars / "delta-1.0.jar").write_text("delta\n")
    (jars / "reactive-streams-1.0.4.jar").touch()
    write_hashes(jars, tmp_path / "jars.sha256")
    return tmp_path / "jars.sha256"


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def jars_directory(hashes: Path) -> Callable[..., Path]:
    return partial(real_jars_directory, hashes=hashes)


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


def test_it_is_filled_once_without_what_pyspark_ships(
    jars_directory: Callable[..., Path], calls: Path
) -> None:
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


@pytest.mark.parametrize("place", ["cache", "jars"])
def test_jars_where_others_may_write_are_not_taken(
    calls: Path, jars_directory: Callable[..., Path], place: str
) -> None:
    found = jars_directory(lambda _: None)
    directory = found if place == "jars" else found.parent
    assert not directory.stat().st_mode & 0o022
    for mode in (0o775, 0o757):
        directory.chmod(mode)
        with pytest.raises(ConfigurationError, match="others may write there"):
            jars_directory(lambda _: None)


def test_the_warehouse_is_where_it_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not beside the jars of an image, which are root's."""
    cache, own = tmp_path / "cache", tmp_path / "own" / "pulsar-lake"
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(cache))
    monkeypatch.setenv("XDG_CACHE_HOME", str(own.parent))
    assert warehouse() == cache / "warehouse"
    assert not own.exists()
    (cache / "warehouse").chmod(0o775)
    assert warehouse() == cache / "warehouse", "what is there is not believed"
    writable = os.access
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode: not Path(path).is_relative_to(cache) and writable(path, mode),
    )
    assert warehouse() == own / "warehouse"
    assert own.stat().st_mode & 0o777 == 0o755
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert warehouse() == cache / "warehouse"


def test_a_cache_where_others_may_write_is_not_filled(
    calls: Path, jars_directory: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(ConfigurationError, match="others may write there"):
        jars_directory(lambda _: None)
    assert not calls.exists()


def test_processes_at_the_same_time_wait_for_the_first(
    jars_directory: Callable[..., Path], calls: Path
) -> None:
    threads = [threading.Thread(target=jars_directory, args=(lambda _: None,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls.read_text() == "run\n"


def test_a_failure_leaves_nothing_and_says_why(
    jars_directory: Callable[..., Path], calls: Path, tmp_path: Path
) -> None:
    script(tmp_path / "bin" / "mvn", "#!/bin/sh\necho '[ERROR] no way out'\nexit 1\n")
    with pytest.raises(UnavailableError, match="no way out"):
        jars_directory(lambda _: None)
    assert [one for one in (tmp_path / "cache").iterdir() if one.is_dir()] == []


@pytest.mark.parametrize(("tool", "message"), [("mvn", "Maven is missing"), ("javac", "A JDK")])
def test_a_missing_tool_is_one_clear_line(
    jars_directory: Callable[..., Path],
    tool: str,
    message: str,
    calls: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "bin" / tool).unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError, match=message):
        jars_directory(lambda _: None)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("echo changed > $out/delta-1.0.jar", "delta-1.0.jar"),
        ("touch $out/more-1.0.jar", "more-1.0.jar"),
        ("rm $out/reactive-streams-1.0.4.jar", "reactive-streams-1.0.4.jar"),
    ],
)
def test_jars_are_what_they_were(
    jars_directory: Callable[..., Path], calls: Path, tmp_path: Path, change: str, named: str
) -> None:
    script(tmp_path / "bin" / "mvn", f"{FAKE_MAVEN}{change}\n")
    with pytest.raises(UnavailableError, match=f"other jars than those of jars.sha256: {named}"):
        jars_directory(lambda _: None)
    assert [one for one in (tmp_path / "cache").iterdir() if one.is_dir()] == []


@pytest.mark.parametrize("listed", [build.HASHES, Path("testbed/server/jars.sha256")])
def test_every_jar_has_its_hash(listed: Path) -> None:
    lines = listed.read_text().splitlines()
    assert len(lines) > 40
    assert all(re.fullmatch(r"[0-9a-f]{64}  \S+\.jar", line) for line in lines)
    assert len({line.split()[1] for line in lines}) == len(lines)


def test_the_hashes_are_written_anew(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "HASHES", tmp_path / "new.sha256")
    build.lock_jars()
    lines = (tmp_path / "new.sha256").read_text().splitlines()
    assert [line.split()[1] for line in lines] == ["delta-1.0.jar", "reactive-streams-1.0.4.jar"]


def test_a_cache_that_cannot_be_made_is_one_clear_line(
    jars_directory: Callable[..., Path],
    calls: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ConfigurationError, match="PULSAR_LAKE_CACHE"):
        jars_directory(lambda _: None)


def test_a_shim_shipped_compiled_is_taken_if_its_sources_are_the_same(
    jars_directory: Callable[..., Path],
    calls: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
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
