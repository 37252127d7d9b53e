"""One stream: the positions that a query goes through, and what lies between two of them."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from threading import RLock

import pyarrow as pa

from reader.clients import Clients
from reader.errors import (
    ConfigurationError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
    UnsupportedError,
)
from reader.model import Partition, Position, Topic
from reader.model.columns import METADATA
from reader.plan import from_token, payload_columns, pinned_table, to_token
from reader.stream.known_topic import KnownTopic, another_topic
from reader.stream.lag import Lag, LagReader
from reader.stream.limits import Entries, EntryQueue, Limits, count_rows, take
from reader.stream.losses import warn_once
from reader.stream.offsets import PartitionOffset, StreamOffset
from reader.stream.outage import Outage
from reader.stream.shown_place import ShownPlace
from reader.stream.stream_options import Place, StreamOptions, partition_of
from reader.stream.tails import PatternTopics, Tails
from reader.stream.topic_batch import TopicBatch

_LAG_SECONDS = 5.0


class TopicStream:
    """Thread-safe. ``tails``: of all streams of the same clients. ``warn`` is told of data loss
    that the stream goes on after."""

    def __init__(
        self,
        clients: Clients,
        options: StreamOptions,
        tails: Tails,
        *,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._clients = clients
        self._options = options
        self._tails = tails
        self._warn, self._warn_of_loss = warn, warn_once(warn)
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = RLock()
        self._known: dict[Topic, KnownTopic] = {}
        self._gone: set[Topic] = set()  # deleted, and told of
        pattern = options.pattern
        self._matched = pattern and PatternTopics(clients, pattern, warn, clock)
        self._limits = Limits(options.max_messages, options.max_bytes)
        self._outage = Outage(self.name, warn, clock, sleep)
        self._latest_known: StreamOffset | None = None
        self._queues: dict[Partition, tuple[EntryQueue, PartitionOffset]] = {}
        self._lags = LagReader(clients)
        self._shown = (
            ShownPlace(clients, options.subscription, warn=warn, clock=clock)
            if options.subscription
            else None
        )
        self._lag: tuple[object, float, dict[Partition, Lag]] | None = None

    @property
    def name(self) -> str:
        """What is streamed, for people."""
        topics = ", ".join(str(one) for one in self._options.topics)
        return topics or str(self._options.topics_pattern)

    def columns(self) -> pa.Schema:
        """All columns, payload first. Raises ConfigurationError where topics do not fit together,
        NotFoundError for an unknown topic."""
        with self._lock:
            fields: dict[str, tuple[pa.Field, Topic]] = {}
            if self._matched is not None:
                self._matched.expire()  # a query begins: with the topics that are there
            for topic in self.topics():
                known = self._topic(topic)
                if not self._tails.partitions(topic):
                    raise NotFoundError(f"topic {topic} does not exist")
                for field in payload_columns(known.table(), known.schemas()):
                    other, where = fields.setdefault(field.name, (field, topic))
                    if other.type != field.type:
                        raise ConfigurationError(
                            f"topics {where} and {topic} cannot be one stream: column "
                            f"{field.name} is {other.type} in the one, {field.type} in the other",
                            hint="make a stream of each, and unite what they have in common",
                        )
            if not self._known:
                raise NotFoundError(f"no topic matches {self._options.topics_pattern}")
            return pa.schema([*(field for field, _ in fields.values()), *METADATA])

    def topics(self) -> tuple[Topic, ...]:
        """Those of the stream, as of some seconds ago."""
        if self._matched is not None:
            return self._matched.current()
        for one in self._options.topics:
            if "$" in one.name:
                raise UnsupportedError(
                    f"{one} cannot be streamed: a compacted view or a forced tier has no "
                    "position that a query could go on from",
                    hint=f"stream {one.name.partition('$')[0]} itself; query the view",
                )
        return self._options.topics

    # -- positions -----------------------------------------------------------------------------

    def bounds(self) -> tuple[StreamOffset, StreamOffset | None]:
        """Where the first batch begins, and the last one ends (None: never).

        To be asked for once, and kept.
        """
        with self._lock:
            ending = self._options.ending
            if ending is not None and ending.time is not None:
                # What is published at that very time still comes.
                ending = replace(ending, time=ending.time + 1)
            start = self._resolved(self._options.starting)
            return start, None if ending is None else self._resolved(ending, last=True)

    def end(self) -> StreamOffset:
        """What there is now."""
        with self._lock:
            return self._latest(StreamOffset({}), now=True)

    def next(
        self,
        start: StreamOffset,
        ending: StreamOffset | None = None,
        until: StreamOffset | None = None,
        *,
        waited: float = 0.0,
    ) -> tuple[StreamOffset, StreamOffset]:
        """(how far the batch after ``start`` goes, how far it could): none of it before ``start``.

        ``ending``: not beyond it. ``until``: what ``end`` gave once, and nothing else is new; so
        this waits for servers that do not answer, where there is otherwise nothing new meanwhile.
        ``waited``: seconds since the last batch was begun; no more messages are waited for than
        come before ``ending`` and ``until``.
        """
        with self._lock:
            if until is not None:
                return self._outage.wait(lambda: self._next(start, ending, until, waited))
            found = None
            if not self._outage.is_fresh:
                found = self._outage.ask(lambda: self._next(start, ending, None, waited))
            return found or (start, self._latest_known or start)

    def _next(
        self,
        start: StreamOffset,
        ending: StreamOffset | None,
        until: StreamOffset | None,
        waited: float,
    ) -> tuple[StreamOffset, StreamOffset]:
        # All up to ``until`` was there, though its broker may know nothing of it by now.
        if until is None:
            latest = self._latest(start)
        else:
            self._tell_deleted(start)
            self._require_partitions(start)
            latest = _first_of(until, until, start)
        if ending is not None:
            latest = _first_of(latest, ending, start)
        self._latest_known = latest
        if not (self._limits.is_set or self._options.min_messages):
            return latest, latest
        more = until is None and (ending is None or not _reaches(latest, ending))
        waits = more and waited < self._options.max_delay.total_seconds()
        try:
            return self._limited(start, latest, waits=waits), latest
        except PulsarLakeError:
            self._queues.clear()  # what fills them has ended
            raise

    def _limited(self, start: StreamOffset, latest: StreamOffset, *, waits: bool) -> StreamOffset:
        """How far a batch goes within its limits; ``start`` where it ``waits`` for more."""
        queues, least = self._filled(start, latest), self._options.min_messages
        if least and waits and count_rows(queues.values(), least) < least:
            return start
        if not self._limits.is_set:
            return latest
        taken = take(queues, self._limits)
        found = dict(start.partitions)
        for partition, offset in latest.partitions.items():
            since = start.of(partition)
            at = taken.get(partition, since.at)
            queue = queues.get(partition)
            if queue is not None and queue.ended and not len(queue.entries):
                at = offset.at  # what follows holds no message
            if at > since.at or at == offset.at:  # nothing else lies before ``latest``
                found[partition] = replace(offset, at=at)
            elif partition in start.partitions:
                # What has expired since, or was made again, is judged when it is read.
                expired, life = since.expired, since.created_at
                found[partition] = replace(offset, at=at, expired=expired, created_at=life)
        return StreamOffset(found)

    def _filled(self, start: StreamOffset, latest: StreamOffset) -> dict[Partition, EntryQueue]:
        """What lies between, by partition; what an earlier batch has left is not read again."""
        found: dict[Partition, EntryQueue] = {}
        for partition, to in latest.partitions.items():
            begin = start.of(partition)
            queue, upto = self._queues.get(partition, (None, begin))
            if queue is None or queue.at != begin.at or upto.at > to.at:
                queue, upto = EntryQueue(begin.at), begin
            if to.at > upto.at:
                # What was read up to there may be of a partition that was made again.
                since = replace(begin, at=upto.at, created_at=upto.created_at)
                ends = StreamOffset({partition: since}), StreamOffset({partition: to})
                queue.add(self._entries(partition, *ends))
                upto = to
            found[partition] = queue
            self._queues[partition] = queue, upto
        return found

    def _entries(
        self, partition: Partition, start: StreamOffset, end: StreamOffset
    ) -> Iterator[Entries]:
        from reader.stream.entry_sizes import entries_of  # kernels: only where limits ask for it

        for batch in self._planned(start, end):
            yield from entries_of(self._clients, batch, partition)

    def _latest(self, start: StreamOffset, *, now: bool = False) -> StreamOffset:
        topics = self.topics()
        self._tell_deleted(start)
        try:
            return self._latest_of(topics, start, now=now)
        except NotFoundError:
            if self._matched is None:
                raise
            self._matched.expire()
            if self.topics() == topics:  # one is being made, or was made again at once
                if now:
                    raise
                return start
        return self._latest(start, now=now)

    def _latest_of(
        self, topics: Iterable[Topic], start: StreamOffset, *, now: bool
    ) -> StreamOffset:
        if now:
            for topic in topics:
                self._topic(topic).table(now=True)
        for topic in topics:
            self._topic(topic).warn_if_migrated(self._warn)
        partitions = [one for topic in topics for one in self._tails.partitions(topic, now=now)]
        self._require_partitions(start)
        ends = self._tails.ends(partitions, now=now)
        found = dict(start.partitions)
        for partition, end in ends.items():
            known, about = start.partitions.get(partition), self._topic(partition.topic)
            at = about.end(partition, end)
            if known is not None and at < known.at:
                about.require_not_behind(partition, known)
                at = known.at
            found[partition] = about.offset(partition, at, known)
        return StreamOffset(found)

    def _tell_deleted(self, start: StreamOffset) -> None:
        """Of topics of the pattern that the stream has read and that are not there any more."""
        read = {one.topic for one in start.partitions}
        for topic in sorted(read.difference(self.topics(), self._gone)):
            self._lost(f"topic {topic}, which was read, has been deleted, with what followed")
            self._gone.add(topic)
            self._known.pop(topic, None)
            for partition in [one for one in self._queues if one.topic == topic]:
                del self._queues[partition]

    def _require_partitions(self, start: StreamOffset) -> None:
        """Those that were read are there: a topic only gets more, unless it is another one."""
        read: dict[Topic, set[Partition]] = {}
        for partition in start.partitions:
            read.setdefault(partition.topic, set()).add(partition)
        for topic in read.keys() & set(self.topics()):
            try:
                gone = read[topic].difference(self._tails.partitions(topic))
                if gone:
                    gone.difference_update(self._tails.partitions(topic, now=True))
            except NotFoundError:  # it is told where it is read
                continue
            if gone:
                raise another_topic(
                    f"{topic} was deleted and made again with other partitions: {min(gone)}, which "
                    "was read, is not there any more"
                )

    def _resolved(self, place: Place, *, last: bool = False) -> StreamOffset:
        """``last``: positions that are given are the last to be read, and not the first."""
        if place.offset is not None:
            return place.offset
        latest = StreamOffset(
            {
                one: replace(offset, missing=self._topic(one.topic).missing(one))
                for one, offset in self._latest(StreamOffset({}), now=True).partitions.items()
            }
        )
        if place.end == "latest":
            return latest
        earliest = {
            one: replace(offset, at=self._topic(one.topic).earliest(one))
            for one, offset in latest.partitions.items()
        }
        if place.end == "earliest":
            return StreamOffset(earliest)
        if place.time is not None:
            return self._at_time(StreamOffset(earliest), latest, place.time)
        assert place.positions is not None
        found = dict(latest.partitions if last else earliest)
        for key, wanted in place.positions.items():
            partition = partition_of(self.topics(), key)
            if partition not in found:
                raise ConfigurationError(f"a position is given for {partition}, which is not there")
            if wanted == "latest":
                found[partition] = latest.of(partition)
            elif isinstance(wanted, Position):
                at = wanted if last else wanted.before
                found[partition] = replace(found[partition], at=at)
        return StreamOffset(found)

    def _at_time(self, earliest: StreamOffset, latest: StreamOffset, time: int) -> StreamOffset:
        from reader.stream.entry_sizes import (
            position_before,  # kernels: only where a time asks for it
        )

        if time > self._wall_clock() * 1_000_000:
            raise ConfigurationError(
                "startingPosition or endingPosition is a time that has not come yet",
                hint="a time stands for the place that its messages have in the topic now",
            )
        found = dict(earliest.partitions)
        for batch in self._planned(earliest, latest):
            for partition in batch.end:
                at = position_before(self._clients, batch, partition, time)
                found[partition] = replace(found[partition], at=at)
        return StreamOffset(found)

    # -- rows ----------------------------------------------------------------------------------

    def plan(self, start: StreamOffset, end: StreamOffset) -> tuple[str, list[TopicBatch]]:
        """What lies between two offsets, by topic, as of now; and a token for ``batch``.

        The same rows each time, wherever they lie by then. Raises ConfigurationError for what is
        not there any more, unless the stream goes on after.
        """
        with self._lock:
            found = self._outage.wait(lambda: self._planned(start, end))
            token = json.dumps({str(one.snapshot.topic): to_token(one.snapshot) for one in found})
            return token, found

    def batch(self, start: StreamOffset, end: StreamOffset, token: str) -> list[TopicBatch]:
        """Plan again what ``plan`` gave with the token, in a process that does not have it.

        The rows are those of the same snapshots, whatever has moved since. Raises as ``from_token``
        and ``pinned_table``.
        """
        with self._lock:
            return self._planned_before(start, end, json.loads(token))

    def lag(self, at: StreamOffset, latest: StreamOffset) -> dict[Partition, Lag]:
        """How far each partition's rows up to ``latest`` have not been read.

        Of the same two offsets as before, and where nobody answers: as of some seconds ago.
        """
        with self._lock:
            key, now = (at, latest), self._clock()
            if self._lag is None or self._lag[0] != key or now - self._lag[1] >= _LAG_SECONDS:
                found = dict.fromkeys(latest.partitions, Lag())
                try:
                    for batch in self._planned(at, latest, lost=lambda loss: None):
                        found |= self._lags.of(batch)
                except (UnavailableError, NotFoundError):  # reported when it would be read, as loss
                    found = self._lag[2] if self._lag is not None else {}
                self._lag = key, now, found
            return self._lag[2]

    def show(self, at: StreamOffset) -> None:
        """Show in Pulsar's own tools that the stream is at ``at``, where that was asked for."""
        if self._shown is not None:
            with self._lock:
                pattern = self._matched.known if self._matched is not None else ()
                self._shown.show(at, self._options.topics or pattern)

    def _planned(
        self, start: StreamOffset, end: StreamOffset, *, lost: Callable[[str], None] | None = None
    ) -> list[TopicBatch]:
        found = []
        for topic, starts, ends in _by_topic(start, end):
            try:
                snapshot = self._topic(topic).snapshot(starts, ends, lost=lost or self._lost)
            except NotFoundError:
                if self._options.pattern is None or self._options.fail_on_data_loss:
                    raise
                self._lost(f"topic {topic} has been deleted before it was read")
                continue
            found.append(TopicBatch.of(self._clients, snapshot, starts, ends))
        return found

    def _planned_before(
        self, start: StreamOffset, end: StreamOffset, tokens: Mapping[str, str]
    ) -> list[TopicBatch]:
        found = []
        for topic, starts, ends in _by_topic(start, end):
            token = tokens.get(str(topic))
            if token is None:  # it had been deleted
                continue
            snapshot = from_token(self._clients.admin, topic, token)
            if snapshot.version is not None:
                table = pinned_table(self._clients.storage, snapshot)
                snapshot = replace(snapshot, uri=table.uri, cold_columns=table.schema, table=table)
            found.append(TopicBatch.of(self._clients, snapshot, starts, ends))
        return found

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise ConfigurationError(
                what, hint="option failOnDataLoss=false goes on with what there is"
            )
        self._warn_of_loss(f"the stream of {self.name} goes on without what is lost: {what}")

    def _topic(self, topic: Topic) -> KnownTopic:
        return self._known.setdefault(topic, KnownTopic(self._clients, topic, clock=self._clock))


def _by_topic(
    start: StreamOffset, end: StreamOffset
) -> list[tuple[Topic, dict[Partition, PartitionOffset], dict[Partition, PartitionOffset]]]:
    """(topic, where it begins, where it ends) of those that have got anything, in order."""
    found: dict[Topic, dict[Partition, PartitionOffset]] = {}
    for partition, to in end.partitions.items():
        since = start.of(partition)
        if to.at > since.at or to.given_up > since.given_up:
            found.setdefault(partition.topic, {})[partition] = to
    return [
        (topic, {one: start.of(one) for one in ends}, ends) for topic, ends in sorted(found.items())
    ]


def _reaches(one: StreamOffset, bound: StreamOffset) -> bool:
    """Whether nothing is left before the bound."""
    return all(one.of(partition).at >= to.at for partition, to in bound.partitions.items())


def _first_of(one: StreamOffset, bound: StreamOffset, start: StreamOffset) -> StreamOffset:
    """Not beyond the bound, nor back before ``start``; of its partitions, and ``start``'s."""
    found = dict(start.partitions)
    for partition, offset in one.partitions.items():
        if partition in bound.partitions:
            least, most = start.of(partition), bound.of(partition)
            at = max(min(offset.at, most.at), least.at)
            of = offset if at > least.at or not least.created_at else least
            found[partition] = replace(
                offset,
                at=at,
                created_at=of.created_at or least.created_at or offset.created_at,
                given_up=max(min(offset.given_up, most.given_up), least.given_up),
                missing=least.missing if of.created_at == least.created_at else of.missing,
            )
    return StreamOffset(found)
