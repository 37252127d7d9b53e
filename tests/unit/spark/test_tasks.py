"""Tasks are made of the very plan that ``explain`` shows."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructType

from reader.config import ReadConfig
from reader.errors import NotFoundError
from reader.model import Partition, Position, Tier, Topic
from reader.model.reasons import Reason, TierReason
from reader.plan.cold_files import ColdFile
from reader.plan.completeness import CompactedPart
from reader.plan.filters import Predicate
from reader.plan.offloaded import ColdPart
from reader.plan.plan import Known, plan_snapshot
from reader.plan.publish_times import LearnedTimes
from reader.plan.reads import (
    CompactedRead,
    CountRead,
    EncryptedRead,
    FilesRead,
    SplitsRead,
    plan_reads,
)
from reader.plan.snapshot import Ciphertext
from reader.pulsar import CompactedLedger
from spark_ext.datasource.tasks import TaskFormat, read_task
from tests.unit.plan.values import segment, snapshot, time

TAIL = replace(
    segment(9, 5),
    state="open",
    tier=Tier.BROKER,
    reason=TierReason(Reason.SHORT_TAIL),
    closed_at=None,
)
HOT = (segment(7, 1000, 1 << 30), segment(8, 10), TAIL)
LEARNED = {(0, 8): LearnedTimes(0, 8, 0, 9, 44, 1000, 2000)}


@pytest.mark.parametrize("columns", [None, ["__eventTime"], ["__index"], []])
@pytest.mark.parametrize(
    "predicates", [[], [time(">", 2000)], [Predicate("__ledgerId", ">", (7,))], [time(">", 3)]]
)
@pytest.mark.parametrize("parallelism", [1, 7])
def test_tasks_read_what_is_shown(
    columns: list[str] | None, predicates: list[Predicate], parallelism: int
) -> None:
    plan = plan_snapshot(
        snapshot(*HOT), columns, predicates, known=Known(LEARNED), parallelism=parallelism
    )
    reads = plan_reads(plan, parallelism)
    read = [split for one in reads if isinstance(one, SplitsRead) for split in one.splits]
    for one in plan.segments:
        mine = [split for split in read if split.ledger_id == one.segment.ledger_id]
        entries = [e for s in mine for e in range(s.first_entry, s.last_entry + 1)]
        assert entries == (list(range(one.segment.entries)) if one.read else [])
        assert {s.tier for s in mine} <= {one.segment.tier}
    assert sum(one.rows for one in reads if isinstance(one, CountRead)) == plan.counted


def test_files_and_ciphertext() -> None:
    partition = Partition(Topic("a", "b", "c"), 0)
    cold = ColdPart(
        (),
        tuple(
            ColdFile(name, 100 << 20, 1, {"__publishTime": (at, at)})
            for at, name in enumerate("abc")
        ),
    )
    made = replace(snapshot(), version=3, ciphertext=Ciphertext(3, (partition,)))
    plan = plan_snapshot(made, None, [time("<", 2)], known=Known(cold=cold))
    a, b, _ = cold.files
    assert plan_reads(plan) == (
        FilesRead(plan.topic, 3, (a,), without_encrypted=True),
        FilesRead(plan.topic, 3, (b,), without_encrypted=True),
        EncryptedRead(partition, 3),
    )
    assert plan_reads(plan, file_bytes=1 << 62)[0] == FilesRead(plan.topic, 3, (a, b), True)


def test_a_compacted_view_leaves_out_ciphertext_as_it_does_rows() -> None:
    """Its ledgers from 7 to 34, of which some rows have expired, are read where Pulsar has them."""
    partition = Partition(Topic("a", "b", "c"), 0)
    kept = CompactedLedger(90, 1, None, Position(35, 0))
    part = CompactedPart(partition, 7, 35, kept, Position(35, 4))
    made = replace(snapshot(), version=3, ciphertext=Ciphertext(3, (partition,)))
    cold = ColdPart((), (ColdFile("a", 1),))
    first, *others = plan_reads(
        plan_snapshot(replace(made, compacted=(part,)), known=Known(cold=cold))
    )
    assert first == CompactedRead(part), "before all others: Pulsar may replace it at any time"
    most = (1 << 63) - 1
    assert [one.within for one in others if isinstance(one, EncryptedRead)] == [
        (Position(0, 0), Position(6, most)),
        (Position(35, 0), Position(most, 0)),
    ]
    nothing = replace(made, compacted=(replace(part, first=35),))
    reads = plan_reads(plan_snapshot(nothing, known=Known(cold=cold)))
    assert [one.within for one in reads if isinstance(one, EncryptedRead)] == [None]


def test_where_a_task_was() -> None:
    plan = plan_snapshot(snapshot(segment(7), segment(8)))
    [read] = plan_reads(plan)
    assert read.place["ledgers"] == [7, 8]
    assert read.place["partition"] == segment().partition.full_name


def test_what_spark_does_not_need() -> None:
    cold = ColdPart((), (ColdFile("a", 1), ColdFile("b", 1)))
    plan = plan_snapshot(replace(snapshot(*HOT), version=3), known=Known(cold=cold))
    assert plan.restricted(hot=True, files=None) == plan
    fewer = plan.restricted(hot=False, files={"b"})
    assert not fewer.splits
    assert [one.file.path for one in fewer.cold if one.read] == ["b"]
    assert plan_reads(plan.restricted(hot=False, files=())) == ()


def test_a_table_that_was_deleted_in_between(tmp_path: Path) -> None:
    settings = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    form = TaskFormat.of(settings, snapshot(), StructType().add("__index", LongType()))
    read = EncryptedRead(segment().partition, 3)
    with pytest.raises(NotFoundError, match="was deleted since the query was planned"):
        list(read_task(form, read))
