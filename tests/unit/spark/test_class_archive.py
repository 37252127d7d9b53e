"""The archive of Spark's classes: when a JVM gets one, and that a bad one never fails its start."""

import os
import subprocess
from pathlib import Path
from zlib import crc32

import pytest

from reader.errors import UnavailableError
from spark_ext.session.builder import session_conf
from spark_ext.session.class_archive import (
    archive_options,
    archive_place,
    find_archive,
    make_archive,
    needed,
)
from spark_ext.session.settings import LakeConfig, SparkConfig

OPTIONS = "spark.driver.defaultJavaOptions"
CONF = {"spark.driver.extraClassPath": ""}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the project."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(folder))
    return folder


def place(class_path: str = "") -> Path:
    """Where an archive for the class path belongs."""
    found = archive_place(class_path)
    assert found is not None
    return found


def java(options: str, *more: str) -> str:
    """What a JVM with the options prints, which has to start."""
    command = ["java", *options.split(), *more, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def named(file: Path) -> Path:
    """The file as one that is whole."""
    return file.rename(f"{place()}-{crc32(file.read_bytes()):08x}.jsa")


@pytest.fixture
def archive(cache: Path) -> Path:
    """A small one of this machine's Java."""
    made = cache / "made"
    java(f"-XX:ArchiveClassesAtExit={made} -Xlog:cds=off -Xlog:cds+dynamic=off")
    return named(made)


def mapped(options: str) -> bool:
    """Whether a JVM with these options takes its archive."""
    found = java(options.replace("-Xlog:cds=off", ""), "-Xlog:cds=info:stdout")
    file = next(one for one in options.split() if "SharedArchiveFile" in one).partition("=")[2]
    return "Mapped dynamic" in found and f"{file}" in found


def test_a_jvm_gets_the_archive_that_is_there(cache: Path, archive: Path) -> None:
    options = archive_options("")
    assert f"-XX:SharedArchiveFile={archive}" in options
    assert java(options) == "", "nothing in front of Spark's own output"
    assert mapped(options)


def test_none_without_an_archive(cache: Path) -> None:
    assert archive_options("") == ""


@pytest.mark.parametrize("damage", ["empty", "cut", "longer", "bit"])
def test_a_damaged_archive_is_none(archive: Path, damage: str) -> None:
    content = archive.read_bytes()
    half = len(content) // 2
    flipped = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
    changed = {"empty": b"", "cut": content[:half], "longer": content + b"x", "bit": flipped}
    archive.chmod(0o644)
    archive.write_bytes(changed[damage])
    assert archive_options("") == ""


@pytest.mark.parametrize("damage", ["header", "other Java"])
def test_a_jvm_starts_with_an_archive_that_is_not_its_own(archive: Path, damage: str) -> None:
    content = bytearray(archive.read_bytes())
    match damage:
        case "header":
            content[:64] = bytes(64)
        case "other Java":
            version = b"OpenJDK"  # the header names the JVM that it is for
            assert version in content[:1024]
            content[:1024] = content[:1024].replace(version, b"OtherJD")
    archive.chmod(0o644)
    archive.write_bytes(content)
    named(archive)
    options = archive_options("")
    assert java(options) == ""
    assert not mapped(options)


def test_another_java_or_other_jars_have_another_archive(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "a.jar").write_bytes(b"1")
    before = place(f"{jars}/*")
    assert before == place(f"{jars}/*")
    assert before != place("")
    (jars / "a.jar").write_bytes(b"12")
    assert place(f"{jars}/*") != before
    before = place("")
    home = tmp_path / "other-java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert place("") != before
    (home / "bin" / "java").unlink()
    assert archive_options("") == ""


def test_not_one_that_others_may_have_written(cache: Path, archive: Path) -> None:
    assert archive_options("")
    archive.chmod(0o666)
    assert archive_options("") == ""
    archive.chmod(0o444)
    cache.chmod(0o777)
    assert archive_options("") == ""


def test_a_name_with_blanks_would_be_two_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my cache"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(folder))
    Path(f"{place()}-00000000.jsa").touch(mode=0o444)
    assert find_archive("") is not None
    assert archive_options("") == ""


def test_what_could_not_be_made_is_said(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:NoSuchOption")
    monkeypatch.setenv("SPARK_HOME", str(cache))  # no Spark is there
    with pytest.raises(UnavailableError, match="was not made"):
        make_archive(CONF)
    assert not list(cache.glob("archiving-*")), "nothing half made stays"


def test_few_are_kept(cache: Path, archive: Path) -> None:
    for number in range(5):
        old = cache / f"classes-{number}.jsa"
        old.touch()
        os.utime(old, (number, number))
    assert make_archive(CONF) == archive
    assert sorted(one.name for one in cache.glob("*.jsa")) == sorted(
        [archive.name, "classes-2.jsa", "classes-3.jsa", "classes-4.jsa"]
    )


def test_what_it_is_made_with_has_no_secret(cache: Path) -> None:
    conf = {**CONF, "spark.hadoop.fs.s3a.secret.key": "s3cret", "spark.my.token": "t0ken"}
    assert needed(conf) == CONF


def test_our_java_options_come_before_those_of_the_user() -> None:
    mine = {"spark.driver.extraJavaOptions": "-Da=1 -Xss4m", OPTIONS: "-XX:TieredStopAtLevel=1"}
    conf = session_conf(LakeConfig(spark=SparkConfig(conf=mine)))
    assert conf["spark.driver.extraJavaOptions"] == mine["spark.driver.extraJavaOptions"]
    assert conf[OPTIONS].endswith(" " + mine[OPTIONS])
    assert "-Dlog4j2.configurationFile=" in conf[OPTIONS]
    java(conf[OPTIONS] + " -XX:+UseSerialGC")  # ours name no collector: a JVM has one


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_LAKE__SPARK__CLASS_ARCHIVE", "false")
    assert not LakeConfig.load(None).spark.class_archive
