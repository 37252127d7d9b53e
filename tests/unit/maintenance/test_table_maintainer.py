"""The steps at which other tests kill a maintainer, on a local table."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from offloader.maintenance.table_maintainer import TableMaintainer
from reader.config import StorageConfig
from reader.storage import open_storage
from tests.support.additions import open_table
from tests.support.steps import at_step
from tests.support.tables import TOPIC, fill, settings


def test_files_are_written_before_they_are_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1)
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    for ledger in (1, 2):
        fill(storage, [ledger])
    before = open_table(storage, TOPIC).version
    steps: list[tuple[str, int]] = []

    def note(step: str, *_: object, **__: object) -> None:
        steps.append((step, open_table(storage, TOPIC).version - before))

    with ExitStack() as stack:
        for step in ("maintenance-written", "maintenance-committed"):
            stack.enter_context(at_step(step, partial(note, step)))
        TableMaintainer(storage, settings(storage).offload).maintain(TOPIC)
    assert steps == [("maintenance-written", 0), ("maintenance-committed", 1)]
