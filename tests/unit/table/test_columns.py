"""A table keeps what each of its columns stands for."""

from pathlib import Path

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from reader.config import StorageConfig
from reader.errors import CommitConflictError
from reader.model import SchemaInfo, Topic
from reader.payload import payload_fields
from reader.storage import Storage, open_storage
from tests.support.additions import addition, open_table

TOPIC = Topic("public", "default", "orders")
FIELD = '{"type": "record", "name": "R", "fields": [{"name": "value", "type": "string"}]}'


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path)))


def test_a_table_of_bytes_gets_a_field_called_value(storage: Storage) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, TOPIC, [1], fields=payload_fields([])))
    known = open_table(storage, TOPIC).payload_schema
    fields = payload_fields([SchemaInfo(0, "AVRO", FIELD)], known)
    assert fields.names == ["value", "value_2"]
    more = addition(storage, TOPIC, [2], before=1, fields=fields)
    DeltaCommitter(storage).commit(open_table(storage, TOPIC), more)
    assert open_table(storage, TOPIC).payload_schema.equals(fields, check_metadata=True)


def test_a_name_that_another_offloader_has_given_to_another_field(storage: Storage) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, TOPIC, [1], fields=payload_fields([])))
    table = open_table(storage, TOPIC)
    plan = payload_fields([SchemaInfo(0, "AVRO", FIELD)], table.payload_schema)
    other = payload_fields([SchemaInfo(0, "STRING", "")], table.payload_schema)
    assert plan == other, "the same names and types"
    DeltaCommitter(storage).commit(table, addition(storage, TOPIC, [2], before=1, fields=other))
    late = addition(storage, TOPIC, [3], before=2, fields=plan)
    with pytest.raises(CommitConflictError, match="stands for another field"):
        DeltaCommitter(storage).commit(open_table(storage, TOPIC), late)
