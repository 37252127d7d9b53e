"""The commits of a table's log, as far as it goes back."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from offloader.web.commits import CommitCache
from reader.config import StorageConfig
from reader.errors import UnavailableError
from reader.model import Topic
from reader.storage import Storage, open_storage
from reader.table.log import read_commit

ORDERS = Topic("shop", "live", "orders")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """With a log of which versions 7 to 29 are left."""
    made = open_storage(StorageConfig(uri=str(tmp_path)))
    folder = Path(made.directory(ORDERS)[1]) / "_delta_log"
    folder.mkdir(parents=True)
    for version in range(7, 30):
        info = {"timestamp": version * 1000, "operation": "WRITE"}
        (folder / f"{version:020d}.json").write_text(json.dumps({"commitInfo": info}))
    return made


def test_the_newest_come_first_and_once(storage: Storage) -> None:
    threads: list[bool] = []

    def noted(*asked: Any) -> Any:
        threads.append(threading.current_thread().daemon)
        return read_commit(*asked)

    commits = CommitCache(storage, noted)
    found = commits.newest(ORDERS, 29, "id")
    assert [(one.version, one.at_ms) for one in found] == [(n, n * 1000) for n in range(29, 6, -1)]
    assert len(threads) >= 24
    assert all(threads), "none of them holds up the process's end"
    threads.clear()
    assert [one.version for one in commits.newest(ORDERS, 20, "id")] == list(range(20, 6, -1))
    assert len(threads) <= 8, "what is missing alone is looked for again"
    assert commits.newest(ORDERS, 5, "id") == []


def test_not_beyond_a_version_that_is_missing(storage: Storage) -> None:
    (Path(storage.directory(ORDERS)[1]) / "_delta_log" / f"{20:020d}.json").unlink()
    found = CommitCache(storage).newest(ORDERS, 29, "id")
    assert [one.version for one in found] == list(range(29, 20, -1))


def test_what_it_fails_with_is_raised(storage: Storage) -> None:
    def away(*asked: Any) -> Any:
        raise UnavailableError("no answer")

    with pytest.raises(UnavailableError, match="no answer"):
        CommitCache(storage, away).newest(ORDERS, 29, "id")
