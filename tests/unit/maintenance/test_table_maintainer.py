"""The steps that a maintainer says it has reached, on a local table."""

from __future__ import annotations

from pathlib import Path

import pytest

from offloader.killpoint import Step
from offloader.maintenance.table_maintainer import TableMaintainer
from reader.config import StorageConfig
from reader.storage import open_storage
from tests.support.additions import open_table
from tests.support.tables import TOPIC, fill, settings


def test_it_says_when_files_are_written_and_when_they_are_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1)
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    for ledger in (1, 2):
        fill(storage, [ledger])
    before = open_table(storage, TOPIC).version
    reached: list[tuple[Step, int]] = []
    TableMaintainer(
        storage,
        settings(storage).offload,
        reached=lambda step: reached.append((step, open_table(storage, TOPIC).version - before)),
    ).maintain(TOPIC)
    assert reached == [("maintenance-written", 0), ("maintenance-committed", 1)]
