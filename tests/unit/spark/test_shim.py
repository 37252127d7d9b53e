"""The catalog shim's jar: shipped, or compiled here, never a stale one."""

import os
import zipfile
from pathlib import Path

import pytest

from reader.errors import ConfigurationError
from spark_ext.session.jars import shim
from spark_ext.session.jars.shim import compile_shim, pyspark_jars, shim_jar, shim_name

RIGHT = "final class One { org.apache.spark.sql.connector.catalog.Table table; }\n"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source, and of pyspark's 250 jars, which cost javac half of its time, one."""
    monkeypatch.setenv("PULSAR_LAKE_CACHE", str(tmp_path / "cache"))
    [jar] = pyspark_jars().glob("spark-catalyst_*.jar")
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / jar.name).symlink_to(jar)
    monkeypatch.setattr(shim, "pyspark_jars", lambda: tmp_path / "pyspark")
    folder = tmp_path / "jvm"
    folder.mkdir()
    (folder / "One.java").write_text(RIGHT)
    return folder


def no_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_it_is_compiled_once_for_each_text(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = shim_jar(sources)
    assert made == tmp_path / "cache" / "shim" / shim_name(sources)
    assert zipfile.ZipFile(made).namelist() == ["META-INF/MANIFEST.MF", "One.class"]
    assert [one.name for one in made.parent.iterdir()] == [made.name]
    (tmp_path / "again").mkdir()
    again = compile_shim(tmp_path / "again", sources)
    assert again.read_bytes() == made.read_bytes(), "the same sources give the same jar"
    no_compiler(monkeypatch, tmp_path)
    assert shim_jar(sources) == made
    (sources / "One.java").write_text(RIGHT + "// changed\n")
    with pytest.raises(ConfigurationError, match=r"javac is missing \(install a JDK"):
        shim_jar(sources)


def test_one_shipped_compiled_is_taken_if_its_sources_are_the_same(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = sources / shim_name(sources)
    shipped.touch()
    no_compiler(monkeypatch, tmp_path)
    assert shim_jar(sources) == shipped
    assert not (tmp_path / "cache").exists()
    (sources / "One.java").write_text("final class One { int changed; }")
    with pytest.raises(ConfigurationError, match="javac is missing"):
        shim_jar(sources)


@pytest.mark.parametrize(
    "text",
    [
        "final class One { Missing table; }",
        # A warning, which is an error here.
        "import java.util.List;\nfinal class One { List table; }",
    ],
)
def test_sources_that_the_compiler_refuses_leave_nothing(
    sources: Path, tmp_path: Path, text: str
) -> None:
    (sources / "One.java").write_text(text)
    with pytest.raises(ConfigurationError, match=r"cannot be compiled: .*One.java:\d"):
        shim_jar(sources)
    assert list((tmp_path / "cache" / "shim").iterdir()) == []


def test_a_folder_where_others_may_write_is_not_used(sources: Path, tmp_path: Path) -> None:
    made = tmp_path / "cache" / "shim" / shim_name(sources)
    made.parent.mkdir(parents=True)
    made.touch()
    assert shim_jar(sources) == made
    made.parent.chmod(0o777)
    with pytest.raises(ConfigurationError, match="others may write there"):
        shim_jar(sources)
    assert os.access(made, os.R_OK)
