"""The command line as processes: killed at each step, two at once, a catalog that is away."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from offloader.config import IcebergConfig
from reader.storage import Storage
from tests.support.iceberg import iceberg_config, iceberg_rows, iceberg_table, snapshot_versions
from tests.support.running import Settings, Start, starting
from tests.support.tables import TOPIC, all_rows, fill

STEPS = ("iceberg-written", "iceberg-committed")


@dataclass(frozen=True, slots=True)
class NoPulsar:
    """Nobody answers there: the maintenance of a topic that is named asks for nothing else."""

    service_url: str = "pulsar://127.0.0.1:1"
    admin_url: str = "http://127.0.0.1:1"


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as begin:
        yield begin


@dataclass(frozen=True, slots=True)
class Lake:
    settings: Settings
    config: IcebergConfig

    @property
    def storage(self) -> Storage:
        return self.settings.storage

    def check(self) -> None:
        for pointed in (False, True):
            table = iceberg_table(self.storage, self.config, pointed=pointed)
            assert iceberg_rows(table) == all_rows(self.storage)
        files = Counter(one.file.file_path for one in table.scan().plan_files())
        assert set(files.values()) == {1}


def lake(directory: Path) -> Lake:
    config = iceberg_config("sql", directory)
    section = {"catalog": "sql", "options": config.options}
    return Lake(Settings(directory, NoPulsar(), str(directory / "lake"), iceberg=section), config)


def test_a_kill_at_each_step(tmp_path: Path, start: Start) -> None:
    found = lake(tmp_path)
    fill(found.storage, [1])
    for number, step in enumerate(STEPS, start=2):
        run = start(found.settings, "maintain", TOPIC.local_name, kill=step)
        assert run.code() == -9, run.err
        fill(found.storage, [number])
    run = start(found.settings, "maintain", TOPIC.local_name)
    assert run.code() == 0, run.err
    found.check()
    versions = snapshot_versions(iceberg_table(found.storage, found.config))
    assert versions[-1] == 1 + len(STEPS)
    assert len(versions) == len(set(versions))


def test_two_at_once(tmp_path: Path, start: Start) -> None:
    found = lake(tmp_path)
    for first in (1, 5):
        fill(found.storage, range(first, first + 4))
        runs = [start(found.settings, "maintain", TOPIC.local_name) for _ in range(2)]
        assert [run.code() for run in runs] == [0, 0], [run.err for run in runs]
        found.check()
    versions = snapshot_versions(iceberg_table(found.storage, found.config))
    assert versions[:2] == [1, 2]
    assert len(versions) == len(set(versions))


def test_what_maintain_and_status_say(tmp_path: Path, start: Start) -> None:
    found = lake(tmp_path)
    fill(found.storage, [1, 2])
    dry = start(found.settings, "maintain", TOPIC.local_name, "--dry-run")
    assert dry.code() == 0, dry.err
    assert "there is no Iceberg table yet" in dry.out
    run = start(found.settings, "maintain", TOPIC.local_name)
    assert run.code() == 0, run.err
    assert "Iceberg shows version 1, 2 files added, 0 taken out" in run.out
    found.check()
    again = start(found.settings, "maintain", TOPIC.local_name)
    assert again.code() == 0
    assert "Iceberg" not in again.out, "nothing to say"
    fill(found.storage, [3])
    status = start(found.settings, "status", TOPIC.local_name, "--format", "json")
    status.code()
    [said] = json.loads(status.out)
    behind = said["iceberg"]
    assert (behind["version"], behind["versions"]) == (1, 1)
    assert 0 < behind["seconds"] < 300
    status = start(found.settings, "status", TOPIC.local_name)
    status.code()
    assert f"{TOPIC.local_name}: Iceberg shows version 1, 1 behind, for " in status.out


@pytest.mark.parametrize("command", ["offload", "maintain", "status"])
@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"catalog": "sql"}, "has no address (set iceberg.options.uri)"),
        ({"catalog": "rest", "options": {"type": "rest"}}, "leave out type: iceberg.catalog says"),
    ],
    ids=["no address", "type"],
)
def test_what_the_settings_have_wrong_is_one_line_at_the_start(
    tmp_path: Path, start: Start, command: str, section: dict[str, Any], message: str
) -> None:
    settings = Settings(tmp_path, NoPulsar(), str(tmp_path / "lake"), iceberg=section)
    run = start(settings, command, TOPIC.local_name)
    assert run.code() not in (0, None)
    [line] = [one for one in run.err.splitlines() if one.startswith("error: ")]
    assert message in line
    assert "Traceback" not in run.err


def test_a_catalog_that_is_away_holds_up_nothing(tmp_path: Path, start: Start) -> None:
    section = {"catalog": "rest", "options": {"uri": "http://127.0.0.1:1", "token": "geheimnis"}}
    settings = Settings(tmp_path, NoPulsar(), str(tmp_path / "lake"), iceberg=section)
    for ledger in range(1, 10):
        fill(settings.storage, [ledger])
    run = start(settings, "maintain", TOPIC.local_name)
    assert run.code() == 1, "it has not done all that it was to do"
    assert "9 files" in run.out
    assert "compacted into 1" in run.out
    assert "error: public/default/orders: cannot open the Iceberg catalog" in run.err
    assert "geheimnis" not in run.err + run.out
    status = start(settings, "status", TOPIC.local_name)
    status.code()
    assert "cannot open the Iceberg catalog" in status.out
