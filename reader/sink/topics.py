"""Topics made and deleted: CREATE TABLE, CREATE TABLE … AS SELECT, DROP TABLE, new columns."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Self

import pyarrow as pa
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from reader.clients import Clients
from reader.config import Duration, Section
from reader.encode import WRITABLE, check_message_columns, grown_schema, new_schema
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.model import Topic
from reader.model.column_names import name_key
from reader.model.columns import metadata_name
from reader.pulsar import AdminClient
from reader.sink.sink_options import by_field
from reader.sink.staging import STAGING
from reader.sink.target import Target, payload_columns, resolve_target
from reader.sink.writes import forget_writes, has_writes
from reader.storage import component

_SIZE = re.compile(r"(\d+)\s*([mgt])b?", re.IGNORECASE)
_MEGABYTES = {"m": 1, "g": 1 << 10, "t": 1 << 20}
_UNLIMITED = -1
_OF_SPARK = ("provider", "owner", "comment", "location", "external", "is_managed_location")


def _megabytes(value: object) -> object:
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        return int(match[1]) * _MEGABYTES[match[2].lower()]
    return value


def _minutes(value: timedelta) -> timedelta:
    if value % timedelta(minutes=1):
        raise ValueError("Pulsar counts it in whole minutes")
    return value


class TopicProperties(Section):
    """TBLPROPERTIES of a new topic.

    ``partitions``: 0: it has none. ``schema_type``: as ``new_schema`` has it; NONE: no schema.
    ``key_value_encoding``: of KEY_VALUE, whose records are of ``key_value_records``. ``retention``:
    how long and how much (MB) Pulsar keeps of what nobody needs any more; None: the namespace's.
    """

    partitions: Annotated[int, Field(ge=0, le=10_000)] = 0
    schema_type: str = "AVRO"
    key_value_encoding: str = "INLINE"
    key_value_records: str = "AVRO"
    retention_time: Annotated[Duration, AfterValidator(_minutes)] | None = None
    retention_size: Annotated[int | None, BeforeValidator(_megabytes)] = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Names in any case. Raises ConfigurationError."""
        values = by_field(properties, _FIELDS, "a topic has no property", _OF_SPARK)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name = {field: one for one, field in _FIELDS.items()}[str(first["loc"][0])]
            raise ConfigurationError(
                f"property {name}: {str(first['msg']).removeprefix('Value error, ')}",
                hint="'partitions'='4', 'schemaType'='JSON', 'retentionTime'='7d', "
                "'retentionSize'='10g'",
            ) from None


_FIELDS = {
    "partitions": "partitions",
    "schemaType": "schema_type",
    "keyValueEncoding": "key_value_encoding",
    "keyValueRecords": "key_value_records",
    "retentionTime": "retention_time",
    "retentionSize": "retention_size",
}


def create_topic(
    clients: Clients, topic: Topic, columns: pa.Schema, properties: Mapping[str, str]
) -> None:
    """Make a topic whose schema has these columns; those of metadata are what its messages carry.

    Raises ConfigurationError for columns or properties that it cannot have, and where it is there
    already.
    """
    asked = TopicProperties.of(properties)
    if any(name.lower() == "location" for name in properties):
        raise ConfigurationError(
            "a topic has no location: it is in Pulsar", hint="leave LOCATION, or option path, out"
        )
    check_message_columns(columns)
    known = (*WRITABLE, "__topic")
    unwritable = [
        one for one in columns.names if one.startswith("__") and metadata_name(one) not in known
    ]
    if unwritable:
        raise ConfigurationError(
            f"a topic cannot be made with the column {unwritable[0]}, which Pulsar fills in",
            hint="leave it out",
        )
    plain = asked.schema_type.upper() in ("NONE", "BYTES")
    schema = new_schema(
        payload_columns(columns),
        "BYTES" if plain else asked.schema_type,
        encoding=asked.key_value_encoding,
        records=asked.key_value_records,
    )
    admin = clients.admin
    admin.create(topic, asked.partitions)
    try:
        if not plain:
            admin.put_schema(topic, schema)
        _set_retention(admin, topic, asked)
    except PulsarLakeError:
        admin.delete(topic)
        raise


def _set_retention(admin: AdminClient, topic: Topic, asked: TopicProperties) -> None:
    time, size = asked.retention_time, asked.retention_size
    if time is None and size is None:
        return
    minutes, megabytes = (0, 0) if time is not None and size is not None else admin.retention(topic)
    # 0 keeps nothing, whatever the other one says, and Pulsar takes no such pair.
    minutes = int(time.total_seconds() // 60) if time is not None else minutes or _UNLIMITED
    admin.set_retention(topic, minutes, size if size is not None else megabytes or _UNLIMITED)


def drop_topic(clients: Clients, topic: Topic) -> None:
    """Delete a topic, where ``write.drop_topics`` allows it. Its Delta table stays as it is.

    Which versions of writes it had is forgotten: one of the same name may be made again.
    """
    if not clients.settings.write.drop_topics:
        raise ConfigurationError(
            f"DROP TABLE would delete the topic {topic} with its messages, which is not allowed",
            hint="set write.drop_topics = true; what was offloaded stays in any case",
        )
    remembers = clients.has_storage and has_writes(clients.storage)  # fails before anything is gone
    clients.admin.delete(topic)
    if not remembers:
        return
    try:
        forget_writes(clients.storage, topic)
    except UnavailableError as error:
        error.hint = (
            f"the topic is deleted, and what writes to it have sent is not forgotten: delete "
            f"{STAGING}/*/{component(topic.local_name)}/ below storage.uri before you make it "
            "again, else writes of the same txnAppId and txnVersion are skipped"
        )
        raise


def grow_schema(clients: Clients, target: Target, columns: pa.Schema) -> Target:
    """The topic as it is once its schema has all of these columns.

    Raises ConfigurationError where its strategy does not allow it.
    """
    if target.schema is None:
        return target
    # A column that the schema had before is that column again, with the name that it has.
    before = {name_key(name): name for name in target.removed}
    named = [one.with_name(before.get(name_key(one.name), one.name)) for one in columns]
    grown = grown_schema(target.schema, target.filled.names, payload_columns(pa.schema(named)))
    if grown is target.schema:
        return target
    clients.admin.put_schema(target.topic, grown)
    return resolve_target(clients, target.topic)
