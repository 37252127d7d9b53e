"""Writes to topics: what their tasks run, what is decided, what is sent.

A write is named by what ``open`` answers, which the shim hands back: a planner that was started
anew meanwhile goes on with it.
"""

from __future__ import annotations

import pickle
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from reader.clients import Clients
from reader.errors import ConfigurationError, NotFoundError, UnavailableError
from reader.model import Partition, Topic
from reader.model.columns import METADATA
from spark_ext.ddl import columns_ddl, literal
from spark_ext.planner.format_options import require_settings
from spark_ext.planner.protocol import (
    AbortWrite,
    CommitWrite,
    CreateTopic,
    Done,
    OpenedWrite,
    OpenWrite,
    Sending,
    Sink,
    Write,
    WriteState,
)
from spark_ext.planner.topic_names import COLD, COMPACTED, HOT, TIERS_SUFFIX, plain_topic

if TYPE_CHECKING:
    from reader.sink import NamedWrite, SinkOptions, StagedFile, Target

SINK, PAYLOAD = "/sink", "/payload"
"""Behind a topic's name: what rows are written to, by name or by position (``WriteNames.java``)."""
_READ = (COMPACTED, TIERS_SUFFIX, HOT, COLD)
"""In a name that ``relations`` reads as something else than a topic."""
_NOTHING = Sending(None, "")
_KEPT_WRITES = 256
_KEPT_TOPICS = 10_000
_KEPT_SECONDS = 60.0
"""How long a stream goes on with a topic's partitions and schema as they were."""


class Sinks:
    """Answers the shim's questions about writes. Thread-safe. ``clients_of``: those of a
    configuration. ``clock``: seconds, monotonic. ``now``: s since the epoch."""

    def __init__(
        self,
        clients_of: Callable[[str | None], Clients],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clients_of = clients_of
        self._clock = clock
        self._now = now
        self._lock = Lock()
        self._writes: OrderedDict[tuple[str | None, str], NamedWrite] = OrderedDict()
        self._unnamed: dict[str, tuple[NamedWrite, str | None]] = {}  # that are under way
        self._free: dict[tuple[str | None, str | None], list[NamedWrite]] = {}
        self._sendable: OrderedDict[tuple[str | None, Topic, bool], float] = OrderedDict()
        self._opened: OrderedDict[tuple[object, ...], tuple[float, OpenedWrite]] = OrderedDict()

    def describe(self, config: str | None, namespace: str, name: str) -> Sink:
        """Return the topic as what rows are written to. Raises NotFoundError."""
        payload, asked = name.endswith(PAYLOAD), name
        name = name.removesuffix(PAYLOAD).removesuffix(SINK)
        if name == asked and _suffix(name):  # nobody writes to it: whether it is there is asked
            raise NotFoundError(f"{name} is not a topic")
        topic = _written_topic(namespace, name)
        from reader.encode import WRITABLE  # kernels: not where topics are only read
        from reader.sink import resolve_target

        target = resolve_target(self._clients_of(config), topic)
        columns = target.columns
        return Sink(
            name=name,
            schema=columns_ddl([*columns, *(() if payload else METADATA)]),
            payload=len(columns),
            defaults={
                name: literal(value, columns.field(name).type)
                for name, value in target.defaults().items()
            },
            omitted=(*target.omitted(), *WRITABLE),
            ignored=tuple(name for name in METADATA.names if name not in WRITABLE),
        )

    def create(self, config: str | None, question: CreateTopic) -> Done:
        """Make a topic. Raises ConfigurationError where it cannot have these columns."""
        from reader.sink import create_topic

        topic = _written_topic(question.namespace, question.name)
        columns = _arrow(question.columns)
        create_topic(self._clients_of(config), topic, columns, question.properties)
        self._forget(topic)
        return Done()

    def drop(self, config: str | None, namespace: str, name: str) -> Done:
        """Delete a topic, where the settings allow it."""
        from reader.sink import drop_topic

        topic = _written_topic(namespace, name)
        drop_topic(self._clients_of(config), topic)
        self._forget(topic)
        return Done()

    def _forget(self, topic: Topic) -> None:
        """What was known of it, and its writes' names: it is another one now."""
        with self._lock:
            for known in [one for one in self._sendable if one[1] == topic]:
                del self._sendable[known]
            for place in [one for one in self._free if one[1] in (topic.local_name, None)]:
                del self._free[place]
            self._opened.clear()

    def open(self, config: str | None, question: OpenWrite) -> OpenedWrite:
        """Open a write. Raises ConfigurationError for rows that cannot be written there."""
        require_settings(question.options, config)
        options = tuple(sorted(question.options.items()))
        key = (config, options, question.topic, question.columns, question.query)
        if not question.streaming:
            return self._open(config, question)
        if (known := self._known(key)) is not None:
            return known
        opened = self._open(config, question)
        with self._lock:
            self._opened[key] = (self._clock(), opened)
            while len(self._opened) > _KEPT_WRITES:
                self._opened.popitem(last=False)
        return opened

    def _known(self, key: tuple[object, ...]) -> OpenedWrite | None:
        """What was answered to the same stream a moment ago: Spark asks for each of its batches."""
        with self._lock:
            found = self._opened.get(key)
        return found[1] if found and self._clock() - found[0] < _KEPT_SECONDS else None

    def _open(self, config: str | None, question: OpenWrite) -> OpenedWrite:
        from reader.sink import (
            Delivery,
            NamedWrite,
            public_keys,
            require_deduplication,
            require_producer,
        )
        from spark_ext.datasource.sink_tasks import WriteFormat
        from spark_ext.planner.sink_scans import writing

        asked = _options(question.options, question.topic)
        if question.streaming and asked.app is not None:
            raise ConfigurationError(
                "txnAppId and txnVersion are for batches: a stream has its own",
                hint="leave them out, or write in foreachBatch",
            )
        clients = self._clients_of(config)
        rows = _arrow(question.columns)
        target = self._target(clients, asked, rows)
        named = question.streaming or asked.app is not None
        once = asked.delivery is Delivery.EXACTLY_ONCE
        if once:
            if not clients.has_storage:
                raise ConfigurationError(
                    "what is written exactly once is staged, and storage.uri is not set",
                    hint="name a directory or s3://bucket/prefix, or option "
                    "delivery = at-least-once",
                )
            clients.storage.require_exclusive_put()
        if target is not None:
            require_producer(
                clients,
                target.partition(0),
                target.schema_message,
                encrypted=bool(asked.encryption_keys),
            )
            if once:
                require_deduplication(clients, target.topic, enable=asked.enable_deduplication)
        keys = public_keys(clients.settings.encryption, asked.encryption_keys)
        # The same name with another topic is another write: also of a copied checkpoint.
        place = None if asked.topic is None else asked.topic.local_name
        if named or not once:
            one = NamedWrite(clients, asked.app or question.query, place, now=self._now)
            state, version = None, asked.version
        else:
            one = self._taken(config, clients, place)
            state = WriteState(**one.state())
            version = state.version + 1
        form = WriteFormat(clients.settings, asked, target, one.directory, keys)
        write = Write(
            options=question.options,
            topic=question.topic,
            app=one.app,
            place=place,
            named=named,
            version=version or 0,
            state=state,
        )
        return OpenedWrite(write, writing(form))

    def commit(self, config: str | None, question: CommitWrite) -> Sending:
        """Decide what a write sends. Return the tasks that send it."""
        from reader.sink import Delivery
        from spark_ext.planner.sink_scans import sending

        write, epoch = question.write, question.epoch
        asked, one, clients, version = self._named(config, write, epoch)
        if asked.delivery is not Delivery.EXACTLY_ONCE:
            if write.named and clients.has_storage:
                with suppress(ConfigurationError):  # a storage where nothing can be staged
                    one.give_up(version)
            return _NOTHING
        staged: list[StagedFile] = [pickle.loads(one) for one in question.messages]
        if asked.topic is None:
            routed = {name: part.schemas[name].message for part in staged for name in part.runs}
            self._require_sendable(config, clients, asked, routed, bool(asked.encryption_keys))
        decided = one.decide(version, staged, encrypted=bool(asked.encryption_keys))
        if decided is None:
            self._given_back(config, one)
            return _NOTHING
        manifest, first = decided
        if manifest.sent or manifest.version != version:
            return _NOTHING
        if not first:
            begun = {part.partition: part.schema.message for part in manifest.partitions}
            self._require_sendable(config, clients, asked, begun, manifest.encrypted)
        resume = f"txnAppId = {one.app}, txnVersion = {version}" if epoch is None else ""
        return sending(clients.settings, manifest, first, resume)

    def sent(self, config: str | None, write: Write, epoch: int | None) -> Done:
        """Note that everything that ``commit`` gave has been sent."""
        _, one, _, version = self._named(config, write, epoch)
        manifest = one.latest()
        if manifest is None or manifest.version != version or manifest.sent:
            return Done()
        if write.named:
            one.sent(manifest)
            return Done()
        try:
            one.forget()
        except UnavailableError:  # all of it is sent: maintenance deletes the rest
            with self._lock:
                self._unnamed.pop(one.directory, None)
        else:
            self._given_back(config, one)
        return Done()

    def abort(self, config: str | None, question: AbortWrite) -> Done:
        """Drop what a write that has failed has staged.

        What is needed of one that was decided nobody can tell, as its ``commit`` may be under way:
        the name is nobody's any more, and maintenance deletes the rest.
        """
        from reader.sink import Delivery

        asked, one, clients, _ = self._named(config, question.write, None)
        if asked.delivery is not Delivery.EXACTLY_ONCE:
            return Done()
        if question.decided:
            with self._lock:
                self._unnamed.pop(one.directory, None)
            return Done()
        staged: list[StagedFile] = [pickle.loads(one) for one in question.messages]
        clients.storage.objects().delete([part.path for part in staged if part.path])
        self._given_back(config, one)
        return Done()

    def _require_sendable(
        self,
        config: str | None,
        clients: Clients,
        asked: SinkOptions,
        partitions: Mapping[str, bytes | None],
        encrypted: bool,
    ) -> None:
        """Of what rows name, or an earlier run has: asked for again after a while only.

        ``partitions``: the schemas of their messages, by name.
        """
        from reader.sink import require_deduplication, require_producer

        topics = {Partition.parse(name).topic: name for name in sorted(partitions, reverse=True)}
        for topic, name in sorted(topics.items()):
            key = (config, topic, encrypted)
            with self._lock:
                at = self._sendable.get(key)
            if at is None or self._clock() - at >= _KEPT_SECONDS:
                require_producer(
                    clients, Partition.parse(name), partitions[name], encrypted=encrypted
                )
                require_deduplication(clients, topic, enable=asked.enable_deduplication)
                with self._lock:
                    self._sendable[key] = self._clock()
                    while len(self._sendable) > _KEPT_TOPICS:
                        self._sendable.popitem(last=False)

    def _taken(self, config: str | None, clients: Clients, place: str | None) -> NamedWrite:
        """A name for a write that has none of its own: one that no other to this place has now.

        Few names, as brokers remember each of them.
        """
        from reader.sink import NamedWrite

        with self._lock:
            free = self._free.get((config, place))
            if free:
                found = free.pop()
            else:
                app = uuid.uuid4().hex
                found = NamedWrite(clients, app, place, named=False, now=self._now)
            self._unnamed[found.directory] = (found, place)
        return found

    def _given_back(self, config: str | None, one: NamedWrite) -> None:
        with self._lock:
            taken = self._unnamed.pop(one.directory, None)
            if taken is not None:
                self._free.setdefault((config, taken[1]), []).append(one)

    def _target(self, clients: Clients, asked: SinkOptions, rows: pa.Schema) -> Target | None:
        from reader.sink import grow_schema, require_topic_column, resolve_target

        if asked.topic is None:
            require_topic_column(rows)
            return None
        target = resolve_target(clients, asked.topic)
        if asked.merge_schema:
            target = grow_schema(clients, target, rows)
        target.encoder(rows)  # whether they fit
        return target

    def _named(
        self, config: str | None, write: Write, epoch: int | None
    ) -> tuple[SinkOptions, NamedWrite, Clients, int]:
        from reader.sink import NamedWrite

        clients = self._clients_of(config)
        made = NamedWrite(clients, write.app, write.place, named=write.named, now=self._now)
        key = (config, made.directory)
        with self._lock:
            found, _ = self._unnamed.get(made.directory, (None, None))
            if found is None:
                found = self._writes.pop(key, None) or made
                self._writes[key] = found
            while len(self._writes) > _KEPT_WRITES:
                self._writes.popitem(last=False)
        if write.state is not None:  # asked for by another planner, which is gone
            found.assume(asdict(write.state))
        asked = _options(write.options, write.topic)
        return asked, found, clients, write.version if epoch is None else epoch


def _written_topic(namespace: str, name: str) -> Topic:
    """Raises ConfigurationError for the name of something that is only read."""
    if suffix := _suffix(name):
        raise ConfigurationError(
            f"{name} is read as something else than a topic, so it is not written to or made",
            hint=f"leave {suffix!r} out; a topic that has it in its own name is written to by "
            'format("pulsar") with the option topic',
        )
    return plain_topic(namespace, name)


def _suffix(name: str) -> str:
    return next((suffix for suffix in _READ if suffix in name), "")


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
    from spark_ext.planner.sink_columns import arrow_columns  # pyspark's types: not for reads

    return arrow_columns(columns)
