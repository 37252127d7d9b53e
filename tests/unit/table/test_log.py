"""Commits that a newer version wrote, or that are damaged: who needs no ledgers reads on."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offloader.commit.delta_committer import DeltaCommitter, landed
from offloader.commit.vacuum import unused_files
from offloader.subscription.hold import settled
from reader.config import StorageConfig
from reader.errors import CorruptError
from reader.model import Topic
from reader.storage import Storage, open_storage
from reader.table import LEDGERS_KEY, LoggedCommit, OffloadedLedger, encode_ledgers, records_upto
from reader.table.offloaded_ledgers import decode_ledgers
from tests.support.additions import addition, open_table
from tests.support.tables import make_older

TOPIC = Topic("public", "default", "orders")
LEDGER = OffloadedLedger(0, 4, 10, 10, 100, "bookkeeper", 1, 2)


def newer(text: str) -> str:
    return json.dumps([{**one, "colour": "red"} for one in json.loads(text)])


def damaged(text: str) -> str:
    return text[:-3]


@pytest.fixture(params=[newer, damaged])
def storage(tmp_path: Path, request: pytest.FixtureRequest) -> Storage:
    """A table of two commits, the newest of which says something else of its ledgers."""
    made = open_storage(StorageConfig(uri=str(tmp_path)))
    DeltaCommitter(made).commit(None, addition(made, TOPIC, [3]))
    DeltaCommitter(made).commit(open_table(made, TOPIC), addition(made, TOPIC, [4], before=3))
    change: Callable[[str], str] = request.param
    version = open_table(made, TOPIC).version
    path = Path(made.directory(TOPIC)[1]) / "_delta_log" / f"{version:020d}.json"
    actions: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    [info] = [one["commitInfo"] for one in actions if "commitInfo" in one]
    info[LEDGERS_KEY] = change(info[LEDGERS_KEY])
    path.write_text("\n".join(map(json.dumps, actions)))
    return made


def test_who_needs_no_ledgers_does_not_decode_them(storage: Storage) -> None:
    table = open_table(storage, TOPIC)
    newest = next(table.commits())
    again = addition(storage, TOPIC, [5], before=4)
    assert landed(storage, table, again, newest.id, since=-1)
    assert not landed(storage, table, again, "another", since=-1)
    now = newest.at_ms + 1000
    assert settled(storage, table, TOPIC, clock_ms=now, grace_ms=0) == (table, 0.0)
    [file] = again.files  # written, and never committed
    make_older(Path(storage.directory(TOPIC)[1]), 1, [file.path])
    hour_ago = newest.at_ms - 3_600_000  # every commit is younger, so each is read
    assert [one.path for one in unused_files(storage, TOPIC, hour_ago)] == [file.path]


def test_members_that_a_newer_version_added_are_left_out() -> None:
    assert decode_ledgers(newer(encode_ledgers([LEDGER]))) == [LEDGER]


def test_how_a_lost_ledger_is_stored() -> None:
    lost = OffloadedLedger.lost_one(0, 7)
    assert (lost.lost, LEDGER.lost) == (True, False)
    [stored] = json.loads(encode_ledgers([lost]))
    assert stored == {
        "partition": 0, "ledger": 7, "entries": 0, "rows": 0, "bytes": 0, "tier": "lost",
        "min_publish_time": None, "max_publish_time": None, "closed_at": None,
        "declared_lost": False,
    }  # fmt: skip
    assert decode_ledgers(json.dumps([stored])) == [lost]


@pytest.mark.parametrize("text", ["[{", "{}x", "1", "[1]", '[{"partition": 0}]', '["text"]'])
def test_what_is_no_list_of_ledgers_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(CorruptError, match=LEDGERS_KEY):
        decode_ledgers(text)


def commit(version: int, *ledgers: int | OffloadedLedger) -> LoggedCommit:
    """Of partition 0; a number is a ledger that was offloaded."""
    text = encode_ledgers(
        replace(LEDGER, ledger=one) if isinstance(one, int) else one for one in ledgers
    )
    return LoggedCommit(version, 0, "", "", "id", text, (), False, {})


LOST, UNKNOWN = OffloadedLedger.lost_one(0, 20), OffloadedLedger.lost_one(0, -1)
LOG = [
    commit(5, 80, 81),
    commit(4),  # of maintenance
    commit(3, OffloadedLedger(1, 50, 1, 1, 1, "bookkeeper"), UNKNOWN, 60),
    commit(2, 10, LOST, 30, 31),
    commit(1, UNKNOWN, 5),
]


@pytest.mark.parametrize(
    ("ledger", "expected"),
    [
        (99, 81), (81, 81), (80, 80), (70, 60), (60, 60),
        (59, UNKNOWN), (32, UNKNOWN), (31, 31), (30, 30), (29, LOST), (20, LOST),
        (19, 10), (10, 10), (9, 5), (5, 5), (4, None),
    ],
)  # fmt: skip
def test_what_is_said_of_a_ledger(ledger: int, expected: int | OffloadedLedger | None) -> None:
    """Commits that are no longer there say nothing, and nothing is concluded from that."""
    found = records_upto(LOG, {0: ledger}).get(0)
    if isinstance(expected, int):
        assert found is not None and (found.ledger, found.lost) == (expected, False)
    else:
        assert found == expected
    assert records_upto(LOG[:1], {0: 79}) == {}
    assert records_upto(LOG[:3], {0: 59}) == {}, "what was lost begins further back"
    assert records_upto(LOG, {0: 81, 1: 50, 2: 7}).keys() == {0, 1}
