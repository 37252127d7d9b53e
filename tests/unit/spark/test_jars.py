"""Spark's jars: fetched once, each by its hash, with a clear word where that cannot be.

With the real Ivy and the real Java, from a repository on loopback.
"""

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from reader.errors import ConfigurationError, UnavailableError
from spark_ext.session.jars import (
    GROUPS,
    Jar,
    class_path,
    groups_for,
    jars_folder,
    listed,
    missing_jars,
    warehouse,
)
from spark_ext.session.jars import session_jars as real_session_jars
from spark_ext.session.jars.jar_list import write_list
from spark_ext.session.jars.shim import shim_jar
from spark_ext.session.settings import LakeConfig, SparkConfig
from tests.support.maven_repository import MavenRepository

NOWHERE = "http://127.0.0.1:9/"
"""A mirror that nobody reaches."""
CONTENT = {"first": b"one", "second": b"two" * 1000, "third": b"three"}
JARS = tuple(
    Jar(
        "s3" if name == "third" else "delta",
        hashlib.sha256(data).hexdigest(),
        "org.lake",
        name,
        "1.2",
    )
    for name, data in CONTENT.items()
)


@pytest.fixture
def repository() -> Iterator[MavenRepository]:
    with MavenRepository({jar.repository_path: CONTENT[jar.artifact] for jar in JARS}) as started:
        yield started


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has the shim and nothing else."""
    shim = shim_jar().parent
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "shim").symlink_to(shim)
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(tmp_path / "cache"))
    return home


@pytest.fixture
def session_jars(home: Path, tmp_path: Path) -> Callable[..., tuple[Path, ...]]:
    file = tmp_path / "jars.lock"
    write_list(JARS, file)
    return partial(real_session_jars, GROUPS, file=file)


@pytest.fixture
def third(session_jars: object, tmp_path: Path) -> Callable[..., tuple[Path, ...]]:
    """Return the jars of a session that needs one alone: Ivy's JVM starts once."""
    return partial(real_session_jars, ("s3",), file=tmp_path / "jars.lock")


def silent(_: str) -> None:
    """Take a line of progress."""


def contents(jars: tuple[Path, ...]) -> list[bytes]:
    return [jar.read_bytes() for jar in jars[1:]]


def test_each_group_is_fetched_once(
    session_jars: Callable[..., tuple[Path, ...]],
    third: Callable[..., tuple[Path, ...]],
    repository: MavenRepository,
) -> None:
    lines: list[str] = []
    (jars_folder() / ".fetching-killed").mkdir(parents=True)
    some = third(repository.url, lines.append)
    assert [jar.name for jar in some[1:]] == ["third-1.2.jar"]
    assert repository.names() == ["third"]
    assert lines[0] == "pulsar-lake: fetching 1 jars for Spark (once) ..."
    found = session_jars(repository.url, lines.append)
    assert found[0].name.startswith("pulsar-lake-spark-")
    assert [jar.name for jar in found[1:]] == ["first-1.2.jar", "second-1.2.jar", "third-1.2.jar"]
    assert contents(found) == [*CONTENT.values()]
    assert class_path(found) == ":".join(map(str, found))
    assert "pulsar-lake: fetching 2 jars for Spark (once) ..." in lines
    assert repository.names() == [*CONTENT]
    assert not jars_folder().stat().st_mode & 0o022
    told = len(lines)
    assert session_jars(repository.url, lines.append) == found
    assert third(repository.url, lines.append) == some
    assert len(real_session_jars(())) == 1
    assert len(lines) == told
    assert len(repository.gets) == 3
    visible = [one.name for one in jars_folder().iterdir() if one.suffix != ".jar"]
    assert all(re.fullmatch(r"\.lock|\.checked-\w+", name) for name in visible)
    # A folder that is not this user's, as in an image, is not written to.
    (jars_folder() / ".lock").unlink()
    assert third() == some
    assert not (jars_folder() / ".lock").exists()


def test_a_session_needs_the_groups_of_its_storage() -> None:
    assert groups_for("s3://lake/a", {}) == groups_for("s3a://lake", {}) == ("s3",)
    assert groups_for("/var/lake", {"spark.hadoop.fs.s3a.endpoint": "x"}) == ("s3",)
    assert groups_for("/var/lake", {"spark.ui.enabled": "true"}) == ()
    assert groups_for("/var/lake", {}, delta=True) == ("delta",)
    assert groups_for("", {}, delta=True, any_storage=True) == ("delta", "s3")


@pytest.mark.parametrize(
    ("uri", "conf", "group"),
    [
        ("gs://b/p", {}, "gcs"),
        ("abfss://c@a.dfs.core.windows.net/p", {}, "azure"),
        ("abfs://c@a.dfs.core.windows.net/p", {}, "azure"),
        ("/var/lake", {"spark.hadoop.fs.gs.impl": "x"}, "gcs"),
        ("/var/lake", {"spark.hadoop.fs.azure.account.auth.type": "x"}, "azure"),
    ],
)
def test_a_connector_is_fetched_where_it_is_used(
    uri: str, conf: dict[str, str], group: str
) -> None:
    assert groups_for(uri, conf) == (group,)
    assert len(listed([group])) >= 1
    for other in ("hdfs://n/p", "file:///gs", "gs", ""):
        assert groups_for(other, {}) == ()


def test_a_jar_with_a_classifier(home: Path, tmp_path: Path) -> None:
    """One of several jars of a version: Ivy asks for exactly that."""
    data = b"with all that it needs"
    digest = hashlib.sha256(data).hexdigest()
    jar = Jar("gcs", digest, "org.lake", "fat", "hadoop3-1.2", "shaded")
    assert jar.file == "fat-hadoop3-1.2-shaded.jar"
    assert jar.coordinates == "org.lake:fat:hadoop3-1.2:shaded"
    file = tmp_path / "jars.lock"
    write_list([jar], file)
    assert listed(["gcs"], file) == (jar,)
    with MavenRepository({jar.repository_path: data}) as repository:
        found = real_session_jars(["gcs"], repository.url, silent, file=file)
    assert [one.name for one in found[1:]] == [jar.file]
    assert contents(found) == [data]


def test_at_the_same_time_one_fetches_and_others_wait(
    third: Callable[..., tuple[Path, ...]], repository: MavenRepository
) -> None:
    found: list[tuple[Path, ...]] = []
    threads = [
        threading.Thread(target=lambda: found.append(third(repository.url, silent)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert repository.names() == ["third"]


def test_without_a_network_one_line_says_what_to_do(
    session_jars: Callable[..., tuple[Path, ...]], tmp_path: Path
) -> None:
    with pytest.raises(UnavailableError) as caught:
        session_jars(NOWHERE, silent)
    text = str(caught.value)
    assert re.match(r"3 of 3 jars for Spark could not be fetched: .*Connection refused", text)
    assert f"put them into {jars_folder()}: `pulsar-lake setup --list` lists them" in text
    assert "\n" not in text
    assert missing_jars(file=tmp_path / "jars.lock") == JARS
    for jar in JARS:
        (jars_folder() / jar.file).write_bytes(CONTENT[jar.artifact])
    assert missing_jars(file=tmp_path / "jars.lock") == ()
    assert contents(session_jars(NOWHERE, silent)) == [*CONTENT.values()]


def test_what_came_is_kept_when_the_rest_did_not(
    session_jars: Callable[..., tuple[Path, ...]], repository: MavenRepository
) -> None:
    repository.cut = JARS[1].repository_path
    with pytest.raises(UnavailableError, match=r"1 of 3 jars .*second"):
        session_jars(repository.url, silent)
    repository.cut = ""
    repository.gets.clear()
    assert contents(session_jars(repository.url, silent)) == [*CONTENT.values()]
    assert repository.names() == ["second"]


def test_another_file_than_the_listed_one_is_refused(
    third: Callable[..., tuple[Path, ...]], repository: MavenRepository
) -> None:
    repository.files[JARS[2].repository_path] = b"something else"
    with pytest.raises(UnavailableError, match=r"third-1.2.jar came with another SHA-256"):
        third(repository.url, silent)
    assert [one.name for one in jars_folder().iterdir()] == [".lock"]
    repository.files[JARS[2].repository_path] = CONTENT["third"]  # the repository is mended
    assert contents(third(repository.url, silent)) == [CONTENT["third"]]


def test_a_damaged_file_is_named_and_replaced(
    session_jars: Callable[..., tuple[Path, ...]], repository: MavenRepository
) -> None:
    jars_folder().mkdir()
    for jar in JARS:
        (jars_folder() / jar.file).write_bytes(CONTENT[jar.artifact])
    found = session_jars(repository.url, silent)
    found[2].write_bytes(b"two")
    lines: list[str] = []
    assert contents(session_jars(repository.url, lines.append))[1] == b"two", "hashes cost time"
    with pytest.raises(UnavailableError, match="1 of 1 jars"):
        session_jars(NOWHERE, lines.append, again=True)
    assert lines[0] == (
        f"pulsar-lake: {found[2]} is not the file it has to be, and will be replaced"
    )
    assert contents(session_jars(repository.url, silent)) == [*CONTENT.values()], "without `again`"


def test_mavens_copies_on_this_machine_are_taken_if_they_are_right(
    session_jars: Callable[..., tuple[Path, ...]], repository: MavenRepository, home: Path
) -> None:
    for jar, data in zip(JARS, (CONTENT["first"], CONTENT["second"], b"cut"), strict=True):
        place = home / ".m2" / "repository" / jar.repository_path
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
    assert contents(session_jars(repository.url, silent)) == [*CONTENT.values()]
    assert repository.names() == ["third"]


def test_javas_options_name_a_proxy(
    third: Callable[..., tuple[Path, ...]],
    repository: MavenRepository,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a login, and beside options that choose a collector."""
    repository.login = "me:secret"
    host, port = repository.address.split(":")
    options = f"-Dhttp.proxyHost={host} -Dhttp.proxyPort={port} -Dhttp.proxyUser=me"
    monkeypatch.setenv(
        "JAVA_TOOL_OPTIONS", f"{options} -Dhttp.proxyPassword=secret -XX:+UseParallelGC"
    )
    assert contents(third("http://maven.invalid/", silent)) == [CONTENT["third"]]
    assert [name for name in repository.names() if name in CONTENT] == ["third"]


def test_javas_options_are_not_shown(
    session_jars: Callable[..., tuple[Path, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttp.proxyPassword=secret -XX:NoSuch")
    with pytest.raises(UnavailableError, match="Unrecognized VM option 'NoSuch'") as caught:
        session_jars(NOWHERE, silent)
    assert "secret" not in str(caught.value)


def test_the_mirror_is_a_url_without_a_login() -> None:
    assert SparkConfig(jars_mirror="https://maven.lake/all").jars_mirror
    with pytest.raises(ConfigurationError, match="must not have a user or a password") as caught:
        LakeConfig.load({"spark": {"jars_mirror": "https://me:secret@maven.lake/all"}})
    assert "secret" not in str(caught.value)


def test_without_java_is_one_clear_line(
    session_jars: Callable[..., tuple[Path, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError, match="java is missing"):
        session_jars(NOWHERE, silent)


@pytest.mark.parametrize("place", ["cache", "jars"])
def test_a_folder_where_others_may_write_is_not_used(
    session_jars: Callable[..., tuple[Path, ...]], place: str
) -> None:
    jars_folder().mkdir()
    for jar in JARS:
        (jars_folder() / jar.file).write_bytes(CONTENT[jar.artifact])
    session_jars(NOWHERE, silent)
    directory = jars_folder() if place == "jars" else jars_folder().parent
    for mode in (0o775, 0o757):
        directory.chmod(mode)
        with pytest.raises(ConfigurationError, match="others may write there"):
            session_jars(NOWHERE, silent)


def test_a_cache_that_cannot_be_made_is_one_clear_line(
    session_jars: Callable[..., tuple[Path, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ConfigurationError, match="PULSAR_LAKE_CACHE"):
        session_jars(NOWHERE, silent)


def test_a_folder_that_cannot_be_written_is_one_clear_line(
    session_jars: Callable[..., tuple[Path, ...]],
) -> None:
    (jars_folder() / ".lock").mkdir(parents=True)  # root may write to any folder
    with pytest.raises(ConfigurationError, match=r"cannot be written to .*directory \(free space"):
        session_jars(NOWHERE, silent)


def test_right_files_in_a_folder_that_can_only_be_read_are_enough(
    session_jars: Callable[..., tuple[Path, ...]],
) -> None:
    (jars_folder() / ".lock").mkdir(parents=True)  # root may write to any folder
    for jar in JARS:
        (jars_folder() / jar.file).write_bytes(CONTENT[jar.artifact])
    assert contents(session_jars(NOWHERE, silent)) == [*CONTENT.values()]
    (jars_folder() / JARS[0].file).write_bytes(b"other")
    with pytest.raises(ConfigurationError, match="cannot be written to"):
        session_jars(NOWHERE, silent)


def test_every_jar_is_listed_once_with_its_hash() -> None:
    jars = listed()
    assert len(jars) == len({jar.file for jar in jars}) == len({jar.sha256 for jar in jars}) > 40
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in jars)
    assert {jar.group for jar in jars} == {*GROUPS}
    assert {jar.organisation for jar in listed(("delta",))} == {"io.delta", "io.unitycatalog"}
    lines = Path("testbed/server/jars.sha256").read_text().splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{64}  \S+\.jar", line) for line in lines)
    assert len({line.split()[1] for line in lines}) == len(lines) > 40


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
