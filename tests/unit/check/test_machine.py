"""Java, space and memory, as a machine may have them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from offloader.check.machine_check import (
    available_memory,
    check_jars,
    check_java,
    check_memory,
    check_space,
    free_bytes,
    temporary_directory,
)

GIB = 1 << 30


def java(folder: Path, says: str, code: int = 0) -> str:
    """A program ``bin/java`` that says it; its folder."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n[ \"$1\" = -version ] && echo '{says}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("says", "code", "state", "text"),
    [
        ('openjdk version "17.0.12" 2024-07-16', 0, "ok", "Java 17"),
        ('openjdk version "21" 2023-09-19', 0, "ok", "Java 21"),
        ('java version "1.8.0_402"', 0, "failed", "is Java 8: Spark needs 17 or newer"),
        ('openjdk version "11.0.2"', 0, "failed", "is Java 11"),
        ("Error: could not create the JVM", 1, "failed", "could not create the JVM"),
        ("Picked up JAVA_TOOL_OPTIONS: -Dp=secret\nno VM", 1, "failed", "-version: no VM"),
        ("", 3, "failed", "exit code 3"),
    ],
)
def test_java(tmp_path: Path, says: str, code: int, state: str, text: str) -> None:
    home = java(tmp_path / "jdk", says, code)
    for environment in ({"JAVA_HOME": home, "PATH": ""}, {"PATH": f"{home}/bin"}):
        found = check_java(environment, lambda _: None, seconds=120)
        assert (found.state, text in found.text) == (state, True), found
        assert "secret" not in found.text
        assert ("install a Java runtime" in found.fix) is (state == "failed")


def test_java_home_wins_as_it_does_for_spark(tmp_path: Path) -> None:
    good = java(tmp_path / "good", 'openjdk version "21"')
    environment = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": f"{good}/bin"}
    found = check_java(environment, lambda _: None, seconds=120)
    assert found.state == "failed"
    assert "of JAVA_HOME, does not run: No such file or directory" in found.text


def test_options_of_several_lines_are_not_told(tmp_path: Path) -> None:
    home = java(tmp_path / "jdk", "Picked up JAVA_TOOL_OPTIONS: -XX:No\n-Dp=secret\nno VM", 1)
    environment = {"JAVA_HOME": home, "JAVA_TOOL_OPTIONS": "-XX:No\n-Dp=secret\n"}
    found = check_java(environment, lambda _: None, seconds=120)
    assert found.text.endswith("-version: no VM")


def test_no_java() -> None:
    found = check_java({"PATH": "/nowhere"}, lambda _: None, seconds=120)
    assert found.text == "there is no java on the PATH, and JAVA_HOME is not set"


def test_a_java_that_hangs(tmp_path: Path) -> None:
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\nwhile :; do :; done\n")
    program.chmod(0o755)
    found = check_java({"PATH": str(tmp_path)}, lambda _: None, seconds=0.2)
    assert "does not end within 0.2 s" in found.text


def test_jars(tmp_path: Path) -> None:
    (tmp_path / "a.jar").write_text("other bytes")
    wanted = ["a.jar", "b.jar"]
    for missing, state, text in (
        ([], "ok", "2 jars for Spark"),
        (["b.jar"], "warning", "1 of Spark's 2 jars are not in"),
        (["b.jar", "a.jar"], "failed", "a.jar is not what its hash says"),
    ):
        found = check_jars(tmp_path, wanted, missing)
        assert (found.state, text in found.text) == (state, True), found
        assert ("pulsar-lake setup" in found.fix) is (state != "ok")


def test_settings_that_need_no_jars(tmp_path: Path) -> None:
    assert check_jars(tmp_path, [], []).text == "these settings need none beside pyspark's own"


def of(**sizes: int) -> Callable[[Path], int]:
    return lambda path: sizes[path.name]


def test_space(tmp_path: Path) -> None:
    places = {"jars": tmp_path / "cache", "spills": tmp_path / "tmp"}
    for cache, state, text in (
        (9 * GIB, "ok", "5.0 GiB for spills"),
        (GIB, "warning", "1.0 GiB left for jars"),
        (GIB // 10, "failed", "102.4 MiB left for jars"),
    ):
        found = check_space(places, free=of(cache=cache, tmp=5 * GIB))
        assert (found.state, text in found.text) == (state, True), found
        assert str(tmp_path) in found.text
        assert ("PULSAR_LAKE_CACHE" in found.fix) is (state != "ok")


def test_free_bytes_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b") == pytest.approx(free_bytes(tmp_path), rel=0.5)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    found = check_space({"jars": tmp_path / "cache"}, free=lambda _: 9 * GIB)
    assert (found.state, "cannot be written to" in found.text) == ("failed", True)


def test_a_file_where_a_folder_has_to_be(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    found = check_space({"jars": tmp_path / "cache"}, free=lambda _: 9 * GIB)
    assert (found.state, "cannot be written to" in found.text) == ("failed", True)


def test_where_spark_spills(monkeypatch: pytest.MonkeyPatch) -> None:
    assert temporary_directory({}, {"SPARK_LOCAL_DIRS": "/a,/b"}) == Path("/a")
    assert temporary_directory({"spark.local.dir": "/c"}, {}) == Path("/c")
    assert temporary_directory({}, {}).is_dir()


def test_memory_is_the_least_of_machine_and_container(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  99 kB\nMemAvailable:    4194304 kB\n")
    assert available_memory(meminfo, tmp_path) == 4 * GIB
    (tmp_path / "memory.current").write_text(f"{GIB}\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(meminfo, tmp_path) == 4 * GIB
    (tmp_path / "memory.max").write_text(f"{2 * GIB}\n")
    assert available_memory(meminfo, tmp_path) == GIB
    assert available_memory(tmp_path / "none", tmp_path / "none") is None


@pytest.mark.parametrize(("size", "state"), [(None, "skipped"), (GIB, "warning"), (3 * GIB, "ok")])
def test_memory(size: int | None, state: str) -> None:
    assert check_memory(size).state == state
