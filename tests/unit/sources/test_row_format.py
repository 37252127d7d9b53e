"""What the settings say of a topic's messages reaches whatever decodes them."""

import json

import pyarrow as pa
import pytest

from reader.config import PulsarConfig
from reader.decode.partition_context import NoContext
from reader.model import Partition, SchemaInfo, Topic
from reader.model.columns import METADATA
from reader.payload import payload_fields
from reader.plan import known_schemas
from reader.sources.row_format import RowFormat
from reader.sources.rows import RowBuilder
from reader.table.remembered_schemas import decode_schemas, encode_schemas
from tests.unit.decode.entries import block_of, entry

TOPIC = Topic("public", "default", "events")
RECORD = {"type": "record", "name": "R", "fields": [{"name": "f0", "type": "bytes"}]}


class Table:
    """A table that remembers the topic's schemas as its log has them."""

    def __init__(self, *schemas: SchemaInfo) -> None:
        self.schemas = decode_schemas(encode_schemas(schemas))


@pytest.mark.parametrize("listed", [True, False], ids=["registered", "forgotten by the registry"])
@pytest.mark.parametrize(("setting", "value"), [("text", b"test"), ("base64", b"\xb5\xeb-")])
def test_bytes_in_json_are_read_as_the_settings_say(
    listed: bool, setting: str, value: bytes
) -> None:
    registered = SchemaInfo(0, "JSON", json.dumps(RECORD))
    known = known_schemas(Table(registered), (registered,) if listed else ())  # type: ignore[arg-type]
    config = PulsarConfig.model_validate({"json_bytes": {TOPIC.local_name: setting}})
    columns = pa.schema([*payload_fields(known), *METADATA])
    rows = RowFormat(payload_fields(known), known, columns).set_up(config, TOPIC)
    builder = RowBuilder(Partition(TOPIC, -1), rows)
    decoder = builder.entry_decoder(NoContext(), decryption=None)
    payload = b'{\n "f0": "test"\n}'  # as Pulsar's Python client lays it out
    block = block_of([entry(payload, schema_version=bytes(8))])
    (messages,) = decoder.decode(block)
    (batch,) = builder.build(messages)
    assert batch.column("f0").to_pylist() == [value]
    assert batch.column("__error").to_pylist() == [None]
