"""Writes to topics, for the shim: what its tasks run, what is decided, what is sent.

A write is named by what ``open`` answers, which the shim hands back: a planner that was started
anew meanwhile goes on with it.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reader.clients import Clients
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Topic
from reader.model.columns import METADATA
from spark_ext.ddl import columns_ddl

if TYPE_CHECKING:
    from reader.sink import NamedWrite, SinkOptions, StagedFile, Target

__all__ = ["SINK", "Sinks"]

SINK, PAYLOAD = "$sink", "$payload"
"""Behind a topic's name: what rows are written to, by name or by position (``WriteNames.java``)."""
_KEPT_WRITES = 256


class Sinks:
    """Answers the shim's questions about writes. Thread-safe. ``clients_of``: those of a
    configuration."""

    def __init__(self, clients_of: Callable[[str | None], Clients]) -> None:
        self._clients_of = clients_of
        self._lock = Lock()
        self._writes: OrderedDict[tuple[str | None, str], NamedWrite] = OrderedDict()

    def table(self, config: str | None, namespace: str, name: str) -> dict[str, Any]:
        """{name, schema, payload, ignored}: the topic's name, and the columns that rows may have, as
        DDL; how many are the payload's, and which messages are not given. Raises NotFoundError.
        """
        payload = name.endswith(PAYLOAD)
        name = name.removesuffix(PAYLOAD).removesuffix(SINK)
        topic = _topic(namespace, name)
        # Kernels: not where topics are only read.
        from reader.encode import WRITABLE
        from reader.sink import resolve_target

        columns = resolve_target(self._clients_of(config), topic).columns
        return {
            "name": name,
            "schema": columns_ddl([*columns, *(() if payload else METADATA)]),
            "payload": len(columns),
            "ignored": [one.lower() for one in METADATA.names if one not in WRITABLE],
        }

    def create(
        self,
        config: str | None,
        namespace: str,
        name: str,
        columns: str,
        properties: Mapping[str, str],
    ) -> dict[str, Any]:
        """{ignored}: as ``table`` has it, of a topic that is made with these columns.

        ``columns``: as Spark's JSON of a schema. Raises ConfigurationError where it cannot be.
        """
        from reader.encode import WRITABLE
        from reader.sink import create_topic

        clients = self._clients_of(config)
        create_topic(clients, _topic(namespace, name), _arrow(columns), properties)
        return {"ignored": [one.lower() for one in METADATA.names if one not in WRITABLE]}

    def grow(self, config: str | None, namespace: str, name: str, columns: str) -> dict[str, Any]:
        """{}: the topic's schema has these columns as well."""
        from reader.sink import grow_schema, resolve_target

        clients = self._clients_of(config)
        rows = _arrow(columns)
        target = resolve_target(clients, _topic(namespace, name))
        grown = grow_schema(clients, target, rows)
        missing = [one for one in rows.names if one not in grown.columns.names]
        if missing:
            raise ConfigurationError(
                f"column {missing[0]} cannot be added to topic {target.topic}",
                hint="only records of AVRO and JSON schemas grow, by fields of the record itself",
            )
        return {}

    def drop(self, config: str | None, namespace: str, name: str) -> dict[str, Any]:
        """{}: the topic is deleted, where the settings allow it."""
        from reader.sink import drop_topic

        drop_topic(self._clients_of(config), _topic(namespace, name))
        return {}

    def open(
        self,
        config: str | None,
        options: Mapping[str, str],
        topic: str | None,
        columns: str,
        query: str,
        streaming: bool,
    ) -> dict[str, Any]:
        """{write, function, python, version}: of the tasks that take rows of ``columns``.

        ``topic``: of the table; None: ``options`` name one, or rows do. ``columns``: as Spark's
        JSON of a schema. ``query``: what names the write, where ``options`` do not. Raises
        ConfigurationError for rows that cannot be written there.
        """
        from reader.sink import Delivery, NamedWrite, public_keys, require_deduplication
        from spark_ext.datasource.sink_tasks import WriteFormat, pickled_writing

        asked = _options(options, topic)
        if streaming and asked.app is not None:
            raise ConfigurationError(
                "txnAppId and txnVersion are for batches: a stream has its own",
                hint="leave them out, or write in foreachBatch",
            )
        clients = self._clients_of(config)
        rows = _arrow(columns)
        target = self._target(clients, asked, rows)
        app = asked.app or query
        directory = ""
        if asked.delivery is Delivery.EXACTLY_ONCE:
            if not clients.has_storage:
                raise ConfigurationError(
                    "what is written exactly once is staged, and storage.uri is not set",
                    hint="name a directory or s3://bucket/prefix, or option "
                    "delivery = at-least-once",
                )
            clients.storage.objects()
            if target is not None:
                require_deduplication(clients, target.topic, enable=asked.enable_deduplication)
            directory = NamedWrite(clients, app).directory
        keys = public_keys(clients.settings.encryption, asked.encryption_keys)
        form = WriteFormat(clients.settings, asked, target, directory, keys)
        write = {
            "options": dict(options),
            "topic": topic,
            "app": app,
            "named": streaming or asked.app is not None,
            "version": asked.version or 0,
        }
        return pickled_writing(form) | {"write": json.dumps(write)}

    def commit(
        self, config: str | None, write: str, epoch: int | None, messages: Sequence[str]
    ) -> dict[str, Any]:
        """{} where nothing is to be sent; else the tasks that send it, as ``pickled_sending``.

        ``epoch``: of a stream's batch. ``messages``: pickles in base64, of each task.
        """
        from reader.sink import Delivery, require_deduplication
        from spark_ext.datasource.sink_tasks import pickled_sending

        asked, named, clients, version = self._named(config, write, epoch)
        staged: list[StagedFile] = [pickle.loads(base64.b64decode(one)) for one in messages]
        if asked.delivery is not Delivery.EXACTLY_ONCE or not any(one.rows for one in staged):
            return {}
        manifest, first = named.decide(version, staged, encrypted=bool(asked.encryption_keys))
        if manifest.sent or manifest.version != version:
            return {}
        if asked.topic is None or not first:
            topics = {Topic.parse(_topic_name(one.partition)) for one in manifest.partitions}
            for topic in sorted(topics):
                require_deduplication(clients, topic, enable=asked.enable_deduplication)
        return pickled_sending(clients.settings, manifest, first)

    def sent(self, config: str | None, write: str, epoch: int | None) -> dict[str, Any]:
        """Everything that ``commit`` gave has been sent."""
        _, named, _, version = self._named(config, write, epoch)
        manifest = named.latest()
        if json.loads(write)["named"]:
            if manifest is not None and manifest.version == version and not manifest.sent:
                named.sent(manifest)
        else:
            named.forget()
            with self._lock:
                self._writes.pop((config, json.loads(write)["app"]), None)
        return {}

    def abort(self, config: str | None, write: str, messages: Sequence[str]) -> dict[str, Any]:
        """The tasks have failed: what these staged is dropped, unless it was decided to be sent."""
        _, named, clients, _ = self._named(config, write, None)
        staged: list[StagedFile] = [pickle.loads(base64.b64decode(one)) for one in messages]
        latest = named.latest() if clients.has_storage else None
        kept = set(latest.files) if latest is not None else set()
        paths = [one.path for one in staged if one.path and one.path not in kept]
        if paths:
            clients.storage.objects().delete(paths)
        return {}

    def _target(self, clients: Clients, asked: SinkOptions, rows: pa.Schema) -> Target | None:
        from reader.sink import grow_schema, resolve_target

        if asked.topic is None:
            if "__topic" not in rows.names:
                raise ConfigurationError(
                    "rows have no topic to go to",
                    hint='.option("topic", "tenant/namespace/topic"), or a column __topic',
                )
            return None
        target = resolve_target(clients, asked.topic)
        if asked.merge_schema:
            target = grow_schema(clients, target, rows)
        target.encoder(rows)  # whether they fit
        return target

    def _named(
        self, config: str | None, write: str, epoch: int | None
    ) -> tuple[SinkOptions, NamedWrite, Clients, int]:
        from reader.sink import NamedWrite

        value = json.loads(write)
        clients = self._clients_of(config)
        key = (config, value["app"])
        with self._lock:
            found = self._writes.pop(key, None) or NamedWrite(clients, value["app"])
            self._writes[key] = found
            while len(self._writes) > _KEPT_WRITES:
                self._writes.popitem(last=False)
        asked = _options(value["options"], value["topic"])
        return asked, found, clients, value["version"] if epoch is None else epoch


def _options(options: Mapping[str, str], topic: str | None) -> SinkOptions:
    from reader.sink import SinkOptions

    if topic is None:
        return SinkOptions.of(options)
    if any(name.lower() == "topic" for name in options):
        raise ConfigurationError(
            "a table is the topic: a write to it takes no option topic", hint="leave it out"
        )
    return SinkOptions.of({**options, "topic": topic})


def _arrow(columns: str) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    return to_arrow_schema(StructType.fromJson(json.loads(columns)), timezone="UTC")


def _topic(namespace: str, name: str) -> Topic:
    tenant, _, local = namespace.partition("/")
    if not tenant or not local or "/" in local or not name:
        raise NotFoundError(f"{namespace}/{name} is not a topic", hint="write tenant/namespace")
    return Topic(tenant, local, name)


def _topic_name(partition: str) -> str:
    from reader.model import Partition

    return Partition.parse(partition).topic.full_name
