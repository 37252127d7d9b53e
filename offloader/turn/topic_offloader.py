"""One topic's turn: take the hold, plan, convert, commit, and release what is settled.

The order is the safety (``TopicOffloader._turn``): nothing is read before the hold is there,
nothing is released before the log has it. A stop at any point leaves files that nothing refers to,
at worst; the next turn plans anew from the log. Two offloaders on one topic: one commit wins, the
other plans again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from offloader import model
from offloader.backlog.policy import due, opened_at, overdue, within, within_few
from offloader.commit import DeltaCommitter, ExternalCommits
from offloader.config import OffloadConfig
from offloader.convert import ConversionJobs, SlowError
from offloader.output import Addition, Advance, LakeCommitter
from offloader.subscription import GapTracker, RetentionChecks, TopicKinds
from offloader.turn.chunk_timeouts import ChunkTimeouts
from offloader.turn.conversion_step import ConversionStep, Converted
from offloader.turn.held_topic import HeldTopic, TurnOptions
from offloader.turn.holding import Holding
from offloader.turn.observing import observation_of
from offloader.turn.phase_timer import PhaseTimer
from reader.clients import Clients
from reader.errors import CommitConflictError, PulsarLakeError, UnavailableError
from reader.model import Partition, Topic
from reader.plan import declared_losses, list_ledgers, refuse_recovering
from reader.pulsar import PartitionLedgers
from reader.table import FollowedTables, TopicTable

if TYPE_CHECKING:
    from pyspark import SparkContext

_PLANS = 5  # how often a turn plans again after another offloader's commit


class TopicOffloader:
    """Gives turns to topics; several at once, each to another topic.

    ``jobs`` run the conversions (``convert.spark_jobs``). ``say`` is told, for operators, what is
    begun and what came in between; ``took``, how long each phase of a turn was (``PHASES``), in
    seconds. ``named``: topics that were asked for by name, not by a pattern.
    """

    def __init__(
        self,
        clients: Clients,
        config: OffloadConfig,
        jobs: ConversionJobs[SparkContext],
        *,
        clocks: model.Clocks = model.HOST_CLOCKS,
        say: Callable[[str], None] = lambda text: None,
        took: Callable[[str, float], None] = lambda phase, seconds: None,
        named: Collection[Topic] = (),
    ) -> None:
        admin = clients.admin
        say, took = model.listener(say), model.listener(took)
        self._config = config
        self._lost_ledgers = clients.settings.pulsar.lost_ledgers
        self._tables = FollowedTables(clients.storage)
        self._admin = admin
        self._committer: LakeCommitter = DeltaCommitter(
            clients.storage, newest=self._tables.newest, clocks=clocks
        )
        self._clock_ms = clocks.ms
        self._say = say
        self._timer = PhaseTimer(took, clocks.elapsed)
        self._checks = RetentionChecks(admin, config, elapsed=clocks.elapsed, say=say)
        self._kinds = TopicKinds(admin, named, monotonic=clocks.elapsed, log=say)
        self._holding = Holding(
            admin,
            self._tables,
            clients.storage,
            self._committer,
            config,
            clock_ms=clocks.ms,
            say=say,
            timer=self._timer,
        )
        self._tracker = GapTracker()
        self._external = ExternalCommits(clients.storage)
        self._timeouts = ChunkTimeouts(clients, config.source)
        self.jobs = jobs
        self._conversion = ConversionStep(
            clients, config, jobs, self._timeouts, say=say, timer=self._timer
        )

    # -- what a topic can be given -------------------------------------------------------------

    def turn(
        self,
        topic: Topic,
        *,
        now: bool = False,
        workers: model.Workers = model.Workers.HEALTHY,
        progress: model.TaskCallback = lambda done, total: None,
    ) -> model.Turn:
        """One commit of what is due, if anything is, and the release of what is settled.

        ``now``: all sealed ledgers are due, whatever the settings say. ``workers``:
        who converts it. A partition whose transactions a broker is recovering has
        nothing due; the turn that is left with these alone raises UnavailableError. Raises
        StoppedError if it was stopped before its conversion
        began, CommitConflictError where other offloaders were first again and again, and what
        Pulsar, the tasks or the storage failed with.
        """
        options = TurnOptions(now, workers, progress)
        for left in reversed(range(_PLANS)):
            try:
                return self._turn(topic, options)
            except CommitConflictError as error:
                if not left:
                    raise
                self._say(f"{topic}: planning again: {error}")
        raise AssertionError("unreachable")

    def observe(self, topic: Topic, *, now: bool = False) -> model.Turn:
        """A turn that converts nothing and closes no ledger.

        ``more``: whether something is due, or may be where a broker cannot tell yet.
        """
        if (note := self._kinds.left_out(topic)) is not None:
            return self._left_out(topic, note)
        held = self._hold(topic, roll_over=False)
        released, wait = self._release(held)
        more = bool(self._due(held, now)) or held.recovering
        return model.Turn(topic, None, released, more, self._observation(held, release_in=wait))

    def hold(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        """Take the hold on partitions that were added, also while the topic has its turn.

        The turn after it finds them held. What it fails with is said.
        """
        try:
            if self._kinds.left_out(topic) is not None:
                return
            self._checks.check(topic)
            self._holding.take_new(partitions)
        except Exception as error:  # noqa: BLE001 - no turn's result: nobody else would hear of it
            self._say(f"{topic}: new partitions have no hold yet: {error}")

    def release(self, topic: Topic) -> tuple[tuple[model.Release, ...], float]:
        """Move the topic's hold to what has been in the log for ``grace``.

        Returns the moves, and the seconds until more is settled (0.0: nothing is waiting).
        """
        return self._release_of(topic, self._admin.partitions(topic))

    def _release_of(
        self, topic: Topic, partitions: Sequence[Partition]
    ) -> tuple[tuple[model.Release, ...], float]:
        # Nothing of it depends on what transactions hide: only what is in the table is let go.
        listed = list_ledgers(self._admin, partitions, transactions=False)
        table = self._tables.newest(topic)
        return self._holding.release(topic, listed, table) if table else ((), 0.0)

    def release_at_once(self, held: HeldTopic) -> tuple[model.Release, ...] | None:
        """``release`` after a commit, which counts: None where it has to wait for the next turn."""
        try:
            return self._release_of(held.topic, list(held.listed))[0]
        except UnavailableError as error:
            self._say(f"{held.topic}: committed, but the hold is not moved yet: {error}")
            return None

    def _note_recorded(self, after: TopicTable, addition: Addition) -> None:
        try:
            self._holding.recorded(after, (one.partition for one in addition.advances))
        except UnavailableError as error:
            self._say(f"{after.topic}: committed, but the hold does not say so yet: {error}")

    # -- the order of a turn -------------------------------------------------------------------

    def _turn(self, topic: Topic, options: TurnOptions) -> model.Turn:
        if (note := self._kinds.left_out(topic)) is not None:
            return self._left_out(topic, note)
        # 1. The hold, under which the ledgers are listed, and only then the log is read.
        held = self._hold(topic, roll_over=True)
        # 2. Released is what an earlier commit has had in the log for its grace.
        released, wait = self._release(held)
        dues = self._due(held, options.now)
        if options.workers is model.Workers.SLOW:
            chosen = within_few(dues, model.SLOW_COMMIT_BYTES)
        else:
            chosen = within(dues, model.COMMIT_BYTES)
        if not chosen:
            refuse_recovering(held.listed)  # what was asked for may be in there
            return model.Turn(
                topic, None, released, False, self._observation(held, release_in=wait)
            )
        if held.table is None:
            self._holding.require_unclaimed(topic, held.listed)
        began = self._timer.now()
        # 3. Files, which nothing refers to yet.
        try:
            addition, slow = self._converted(held, chosen, options)
        except SlowError as error:
            self._say(f"{topic}: {error}: slow topics are converted beside the others from now on")
            seen = self._observation(held, release_in=wait)
            return model.Turn(topic, None, released, more=True, observation=seen, slow=True)
        if addition is None:  # the log completes the messages that were to be given up
            seen = self._observation(held, release_in=wait)
            return model.Turn(topic, None, released, held.recovering, seen, slow)
        # 4. The commit, on top of the very table that was planned on.
        with self._timer.phase("commit"):
            after = self._committer.commit(held.table, addition)
        # 5. Only now may the hold move: at once without a grace, by a log that is read afresh.
        grace = self._settings(topic).grace.total_seconds()
        self._note_recorded(after, addition)
        at_once = () if grace else self.release_at_once(held)
        committed = _committed(after, addition, chosen, self._timer.now() - began)
        observation = self._observation(held, (after, addition), release_in=wait or grace)
        more = sum(len(one.ledgers) for one in chosen) < sum(len(one.ledgers) for one in dues)
        more = more or at_once is None or held.recovering
        return model.Turn(topic, committed, released + (at_once or ()), more, observation, slow)

    def _left_out(self, topic: Topic, note: str) -> model.Turn:
        """The turn of a topic that is not offloaded, and has no hold."""
        at, now = self._clock_ms() / 1000, self._timer.now()
        nothing = model.TopicBacklog(at=at, asked=now, read=now, version=None, partitions=())
        return model.Turn(topic, None, (), False, model.Observation(at, nothing, notes=(note,)))

    def _converted(
        self, held: HeldTopic, chosen: Sequence[model.Due], options: TurnOptions
    ) -> Converted:
        """What to commit. Raises what the conversion failed with, unless another offloader has
        committed the same meanwhile, and so let go of what was to be read: CommitConflictError.
        """
        try:
            return self._conversion.convert(held, chosen, options)
        except model.StoppedError:
            raise
        except PulsarLakeError as error:
            if not self._is_overtaken(held.topic, chosen):
                raise
            raise CommitConflictError(
                f"another offloader has committed it meanwhile: {error.message}"
            ) from error

    def _is_overtaken(self, topic: Topic, chosen: Sequence[model.Due]) -> bool:
        try:
            table = self._tables.newest(topic)
        except PulsarLakeError:
            return False
        return table is not None and any(
            table.watermark(one.partition) > one.watermark for one in chosen
        )

    def _hold(self, topic: Topic, *, roll_over: bool) -> HeldTopic:
        """The topic under its hold; operators are told what came to light."""
        began_ms, began = self._clock_ms(), self._timer.now()
        with self._timer.phase("list"):
            unsafe = self._checks.check(topic)
            listed = self._holding.take(topic)
            if roll_over:
                listed = self._roll_over(topic, listed)
            read = self._timer.now()
            table = self._tables.newest(topic)
            given_up = self._holding.check(listed, table) if table else ()
            self._holding.name_table(listed, table)
        for commit in self._external.since_last(table) if table else ():
            self._say(f"{topic}: {commit}")
        lost = self._tracker.lost(table, listed, given_up)
        declared = declared_losses(table, listed, self._lost_ledgers)
        for loss in (*lost, *declared):
            self._say(str(loss))
        notes = (*unsafe, *map(str, lost), *map(str, declared))
        notes += self._kinds.notes(topic, listed)
        if table is not None and table.topic_numbers.data_loss is not None:
            notes += ("messages were lost before they were offloaded: status has the ledgers",)
        listed = self._holding.restore(listed, table)
        return HeldTopic(topic, began_ms, began, read, listed, table, tuple(lost), notes)

    def _roll_over(
        self, topic: Topic, listed: Mapping[Partition, PartitionLedgers]
    ) -> Mapping[Partition, PartitionLedgers]:
        """Close the open ledgers that are older than ``rollover_after``; ``listed`` after that."""
        after = self._settings(topic).rollover_after
        if after is None:
            return listed
        opened = {one: opened_at(listing) for one, listing in listed.items()}
        age_ms = after.total_seconds() * 1000

        def is_old(partition: Partition, at: int | None) -> bool:
            # By the broker's clock, as ``at`` is: a host that is ahead would unload in each turn.
            now = listed[partition].listed_at or self._clock_ms()
            return at is not None and at <= now - age_ms

        old = [one for one, at in opened.items() if is_old(one, at)]
        if old:
            # By the brokers' counters, which an unload sets back.
            self._tracker.lost(self._tables.newest(topic), listed)
        for partition in old:
            self._say(f"{partition}: its open ledger is older than {after}: unloading it")
            self._admin.unload(partition)
        return {**listed, **list_ledgers(self._admin, old)} if old else listed

    def _release(self, held: HeldTopic) -> tuple[tuple[model.Release, ...], float]:
        if held.table is None:
            return (), 0.0
        return self._holding.release(held.topic, held.listed, held.table)

    def _due(self, held: HeldTopic, now: bool) -> list[model.Due]:
        settings = self._settings(held.topic)
        clock_ms = self._clock_ms()
        watermarks, lookbacks = held.watermarks(), held.lookbacks()
        found = []
        for one, listing in held.listed.items():
            if listing.recovering:
                continue  # nobody knows what its log holds
            watermark = watermarks[one]
            give_up_at = self._timeouts.due_at(
                listing, watermark, lookbacks[one], settings.chunk_timeout_ms
            )
            found.append(
                due(listing, watermark, clock_ms=clock_ms, config=settings, now=now)
                or overdue(listing, watermark, give_up_at)
            )
        return [one for one in found if one is not None]

    def _observation(
        self,
        held: HeldTopic,
        committed: tuple[TopicTable, Addition] | None = None,
        *,
        release_in: float,
    ) -> model.Observation:
        table: TopicTable | None = held.table
        advances: Sequence[Advance] = ()
        read = held.read
        if committed:
            table, advances, read = committed[0], committed[1].advances, self._timer.now()
        return observation_of(
            held,
            held.watermarks() | {one.partition: one.upto for one in advances},
            version=table.version if table else None,
            read=read,
            settings=self._settings(held.topic),
            now_ms=self._clock_ms(),
            release_in=release_in,
            give_up_in=self._give_up_in(held, advances),
        )

    def _give_up_in(self, held: HeldTopic, committed: Sequence[Advance]) -> float | None:
        """Seconds until a chunked message is to be given up, if one is waiting."""
        watermarks = held.watermarks() | {one.partition: one.upto for one in committed}
        lookbacks = held.lookbacks() | {one.partition: one.lookback for one in committed}
        timeout_ms = self._settings(held.topic).chunk_timeout_ms
        waits = []
        for one, listing in held.listed.items():
            at = self._timeouts.due_at(listing, watermarks[one], lookbacks[one], timeout_ms)
            if at is not None and listing.listed_at is not None:
                waits.append(max(0.0, (at - listing.listed_at) / 1000))
        return min(waits, default=None)

    def _settings(self, topic: Topic) -> OffloadConfig:
        return model.settings_of(self._config, topic)


def _committed(
    after: TopicTable, addition: Addition, chosen: Sequence[model.Due], seconds: float
) -> model.Committed:
    return model.Committed(
        version=after.version,
        ledgers=len(addition.ledgers),
        files=len(addition.files),
        rows=sum(file.rows for file in addition.files),
        bytes=sum(file.size for file in addition.files),
        seconds=seconds,
        reason=chosen[0].reason,
        stored=sum(one.bytes for one in addition.ledgers),
        rescued=sum(file.rescued for file in addition.files),
    )
