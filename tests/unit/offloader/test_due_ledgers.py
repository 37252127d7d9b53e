"""What a commit says of a ledger whose rows lie in several files."""

from types import SimpleNamespace
from typing import Any

from offloader.convert.due_segments import due_ledgers
from offloader.model import Due
from offloader.output import LedgerRows
from reader.model import Partition, Position, Topic
from reader.pulsar.ledgers import LedgerInfo, PartitionLedgers

PARTITION = Partition(Topic("public", "default", "orders"), 0)


def test_rows_and_times_are_those_of_all_files() -> None:
    ledgers = tuple(LedgerInfo(one, 10, 100, None, False, 1) for one in (4, 5))
    end = Position(6, -1)
    listing = PartitionLedgers(PARTITION, ledgers, end, end, False, "2026", 0, {})
    due = Due(PARTITION, 3, ledgers, "now", "requested", "2026")
    files: Any = [
        SimpleNamespace(ledgers=(LedgerRows(4, 3, 20, 30), LedgerRows(5, 2, None, None))),
        SimpleNamespace(ledgers=(LedgerRows(4, 5, 10, 25),)),
    ]
    segments: Any = dict.fromkeys([(PARTITION, 4), (PARTITION, 5)], SimpleNamespace(tier="x"))
    found = due_ledgers({PARTITION: listing}, [due], segments, files)
    assert [(one.ledger, one.entries, one.rows) for one in found] == [(4, 10, 8), (5, 10, 2)]
    times = [(one.min_publish_time, one.max_publish_time) for one in found]
    assert times == [(10, 30), (None, None)]
