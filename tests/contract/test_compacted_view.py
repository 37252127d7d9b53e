"""The compacted view of a topic is what the Java client's compacted reader gives."""

import pytest
from pyspark.errors import AnalysisException

from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.oracle import Json
from tests.contract.against_java import Contract
from tests.contract.java import bytes_of


def test_compacted_view(
    contract: Contract, contract_lake: PulsarLake, topic_name: str, admin: Admin
) -> None:
    """A compacted reader of the wholly compacted topic, over rows in the table and behind it."""
    keys: list[Json] = [
        {"key": "a"},
        {"key": "aGk="},
        {"key_bytes": b"hi"},  # the same text, in base64
        {"key": ""},
        {"key_bytes": b""},
        {"key": None},
        {},
        {"key": "ü"},
        {"key_bytes": b"\xff"},
    ]
    values = [b"1", None, b"2", b"", b"3", b"4", None, b"5"]

    def messages(start: int, count: int) -> list[Json]:
        return [
            {**keys[n % len(keys)], "value": values[n * 5 % len(values)], "event_time": n + 1}
            for n in range(start, start + count)
        ]

    contract.oracle.write(topic_name, messages(0, 15))
    contract.oracle.write(topic_name, messages(15, 15), batch=4)
    admin.seal(topic_name)
    contract.offload(topic_name)
    contract.oracle.write(topic_name, messages(30, 15), batch=4)
    contract.oracle.write(topic_name, messages(45, 10))
    admin.compact(topic_name)
    expected = [
        (row["ledger"], row["entry"], row["batch"], row["key"], bytes_of(row["data"]))
        for row in contract.oracle.read(topic_name, compacted=True)
    ]
    table = contract_lake.table(topic_name, view="compacted").toArrow().to_pylist()
    names = ("__ledgerId", "__entryId", "__batchIndex", "__key", "value")
    assert sorted(tuple(row[name] for name in names) for row in table) == sorted(expected)
    tenant, namespace, name = topic_name.removeprefix("persistent://").split("/")
    with pytest.raises(AnalysisException, match="cannot be streamed: a compacted view") as refused:
        contract_lake.spark.readStream.table(f"pulsar.`{tenant}/{namespace}`.`{name}$compacted`")
    assert len(str(refused.value).splitlines()) == 1
