"""The storage's check on local directories; S3, and one without conditional puts: integration."""

import time
from pathlib import Path

import pytest

from offloader.check.storage_check import StoredAt, check_storage
from reader.config import StorageConfig
from reader.errors import UnavailableError
from reader.storage import Storage, open_storage


def storage(path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(path)))


def test_a_directory_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    times: list[StoredAt] = []
    said: list[str] = []
    found = check_storage(storage(tmp_path), said.append, stored=times.append)
    assert found.state == "ok", found
    assert "of 4 commits at once one succeeds (3 times)" in found.text
    assert [one.name for one in tmp_path.iterdir()] == ["public"]
    assert said == [str(tmp_path)]
    [at] = times
    assert at.there_ms is not None
    assert at.before_ms - 1000 <= at.there_ms <= at.after_ms + 1000


def test_no_topics_table_can_be_where_the_scratch_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant of the scratch's very name gets another directory."""
    from reader.model import Topic

    made = storage(tmp_path)
    for name in ("~check-1-a", "~check-1700000000-0123abcd"):
        assert f"/{name}/" not in made.table_uri(Topic(name, "b", "c"))


def test_what_killed_checks_left_is_deleted_after_an_hour(tmp_path: Path) -> None:
    now = int(time.time())
    old, young, other = f"~check-{now - 4000}-ab", f"~check-{now - 60}-cd", "~check-me"
    for name in (old, young, other):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    assert check_storage(storage(tmp_path), lambda _: None).state == "ok"
    assert {one.name for one in tmp_path.iterdir()} == {young, other}


def test_a_place_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match=r"^cannot write to .*/file/lake: ") as error:
        check_storage(storage(tmp_path / "file" / "lake"), lambda _: None)
    assert "check storage.uri" in str(error.value.hint)


def test_the_place_is_named_before_it_is_waited_for() -> None:
    class Said(Exception):  # noqa: N818
        pass

    def waiting(text: str) -> None:
        raise Said(text)

    options = {"endpoint_url": "http://127.0.0.1:1", "allow_http": "true", "region": "r"}
    options |= {"access_key_id": "k", "secret_access_key": "s"}
    made = open_storage(StorageConfig(uri="s3://lake/x", options=options))
    with pytest.raises(Said, match=r"^s3://lake/x at http://127\.0\.0\.1:1$"):
        check_storage(made, waiting)
