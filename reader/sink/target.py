"""The topic that rows go to: its partitions, its schema, and whether rows fit it."""

import re
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from reader import encode
from reader.clients import Clients
from reader.errors import ConfigurationError, NotFoundError, UnavailableError
from reader.model import Partition, SchemaInfo, Topic
from reader.model.column_names import name_key
from reader.model.columns import metadata_name
from reader.plan import payload_columns as read_columns
from reader.sink.staged_entries import ShownSchema

_LOOK_SECONDS = 5.0
_PARTITION = re.compile(r"(.+)-partition-\d+")


@dataclass(frozen=True, slots=True)
class Target:
    """A topic as it was when the write began.

    ``partitions``: 0: the topic has none. ``schema``: the newest version, None: none;
    ``schema_message``: as producers show it, ``schema_version``: as messages name it.
    ``entry_bytes``: of an entry at most. ``fields``: the columns of its fields, None: those of a
    topic that has this version alone.
    """

    topic: Topic
    partitions: int
    schema: SchemaInfo | None
    schema_message: bytes | None
    schema_version: bytes
    entry_bytes: int
    fields: encode.TargetColumns | None = None

    def partition(self, index: int) -> Partition:
        """One of them; of a topic without partitions there is the one of index 0."""
        return Partition(self.topic, index if self.partitions else -1)

    @property
    def shown(self) -> ShownSchema:
        return ShownSchema(self.schema_message, self.schema_version)

    @property
    def columns(self) -> pa.Schema:
        """The payload columns that rows may have, in the order in which the topic is read."""
        return self._fields().columns

    @property
    def removed(self) -> frozenset[str]:
        """The columns that no field of the newest schema fills. Rows have NULL in them."""
        return self._fields().removed

    @property
    def filled(self) -> pa.Schema:
        """The columns that fields of the newest schema fill."""
        removed = self.removed
        return pa.schema([field for field in self.columns if field.name not in removed])

    def _fields(self) -> encode.TargetColumns:
        return encode.target_columns(self.schema) if self.fields is None else self.fields

    def defaults(self) -> dict[str, bool | int | float | str]:
        """What a payload column is where it is left out: of AVRO and JSON, plain values alone."""
        columns = self.columns
        return {
            column: default.plain
            for column, default in self._defaults().items()
            if default.plain is not None and _is_of(columns.field(column).type, default.plain)
        }

    def omitted(self) -> list[str]:
        """Columns that are not given to the encoder where they are NULL.

        They have a default that is nothing plain (``defaults``), and null is no value of them; or
        they are `removed`.
        """
        plain = self.defaults()
        defaulted = [
            column
            for column, default in self._defaults().items()
            if column not in plain and not default.can_be_null
        ]
        return [*defaulted, *sorted(self.removed)]

    def _defaults(self) -> dict[str, encode.FieldDefault]:
        """The defaults of an AVRO or JSON record's fields, by column."""
        members = self._fields().layout.by_name()
        found = [] if self.schema is None else encode.field_defaults(self.schema)
        return {
            members[default.field].column: default for default in found if default.field in members
        }

    def split(self, payload: pa.Schema) -> tuple[pa.Schema, list[str]]:
        """Return the columns of rows that are encoded, and the names of those that are removed."""
        removed = {name_key(name) for name in self.removed}
        kept = [field for field in payload if name_key(field.name) not in removed]
        return pa.schema(kept), [name for name in payload.names if name_key(name) in removed]

    def encoder(self, columns: pa.Schema) -> encode.PayloadEncoder:
        """For rows of these columns. Raises ConfigurationError where they do not fit the schema."""
        encode.check_message_columns(columns)
        payload, _ = self.split(payload_columns(columns))
        if not len(payload):
            raise ConfigurationError(
                f"the rows for {self.topic} have no payload column",
                hint="columns: " + ", ".join(self.filled.names) + "; null values need one, too, "
                "which is NULL",
            )
        try:
            return encode.PayloadEncoder(self.schema, payload, self._fields().layout)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"topic {self.topic}: {error.message}", hint=error.hint, context=error.context
            ) from error


def _is_of(column: pa.DataType, value: bool | int | float | str) -> bool:
    """Return whether a column of this type holds the value. An older version may have chosen it."""
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(column))
    if isinstance(value, str):
        return bool(pa.types.is_string(column))
    return bool(
        pa.types.is_floating(column) or (pa.types.is_integer(column) and isinstance(value, int))
    )


def payload_columns(columns: pa.Schema) -> pa.Schema:
    """Those that are not metadata."""
    return pa.schema([one for one in columns if metadata_name(one.name) is None])


def resolve_target(clients: Clients, topic: Topic) -> Target:
    """The topic as it is now.

    Raises NotFoundError where it is not there, ConfigurationError without permission, and
    UnavailableError.
    """
    if match := _PARTITION.fullmatch(topic.name):
        raise ConfigurationError(
            f"{topic} is one partition: rows are written to a topic, and their keys choose it",
            hint=f"name the topic: {topic.tenant}/{topic.namespace}/{match[1]}",
        )
    try:
        partitions = clients.admin.partitions(topic)
    except NotFoundError as error:
        raise NotFoundError(
            f"topic {topic} does not exist", hint="CREATE TABLE makes one"
        ) from error
    with clients.publisher() as publisher:
        schema = publisher.schema(partitions[0])
        most = publisher.most_bytes(partitions[0])
    own = clients.admin.max_message_size(topic)
    found = schema.schema if schema is not None else None
    if found is not None and found.type in ("NONE", "BYTES"):
        schema = found = None
    if found is not None:
        found = replace(found, **clients.settings.pulsar.json_forms(topic.local_name))
    return Target(
        topic,
        len(partitions) if partitions[0].index >= 0 else 0,
        found,
        schema.message if schema is not None else None,
        schema.version if schema is not None else b"",
        min(most, own or most),
        _target_columns(clients, topic, found),
    )


def _target_columns(
    clients: Clients, topic: Topic, newest: SchemaInfo | None
) -> encode.TargetColumns:
    """Return the columns as the topic is read: by all versions of its schema, and its table."""
    schemas = clients.admin.schemas(topic)
    if newest is not None and newest.version not in [one.version for one in schemas]:
        schemas = (*schemas, newest)
    return encode.target_columns(newest, read_columns(clients.newest_table(topic), schemas))


def require_producer(
    clients: Clients, partition: Partition, schema: bytes | None, *, encrypted: bool
) -> None:
    """Raises ConfigurationError where the broker never takes a producer there.

    Without permission, of a topic that is terminated, of another's alone, or for encrypted
    messages only. A broker that cannot say so soon, or a backlog quota, is waited for later.
    """
    with suppress(UnavailableError), clients.publisher() as publisher:
        publisher.producer(
            partition, schema=schema, encrypted=encrypted, seconds=_LOOK_SECONDS
        ).close()
