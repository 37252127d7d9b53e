"""What a query reads, as one value: tasks, ``explain``, ``segments`` and the status page show it.

``plan_snapshot`` is pure; ``make_plan`` brings what it needs: learned publish times, and what the
table's version holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from reader.model import Segment, Split, Topic
from reader.model.reasons import Pruned, PruneReason
from reader.plan.cold_files import Bounds, PlannedFile, plan_files, table_files
from reader.plan.filters import Predicate
from reader.plan.offloaded import ColdPart, cold_part
from reader.plan.pruning import prune_reason
from reader.plan.publish_times import LearnedTimes, PublishTimeStore
from reader.plan.snapshot import PlanningClients, Snapshot, pinned_table
from reader.plan.splitting import EntryRange, cut_ranges

TASK_BYTES = 128 << 20
"""What one task reads at most, about."""

Learned = Mapping[tuple[int, int], LearnedTimes]
"""By (partition index, ledger id)."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a topic's segments, besides its snapshot.

    ``learned``: by complete reads. ``cold``: what the snapshot's table version holds, or None.
    ``clock_skew``: of producers' clocks, by which close times prune, or None.
    """

    learned: Learned = field(default_factory=dict)
    cold: ColdPart | None = None
    clock_skew: timedelta | None = None


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """A segment, and what this query reads of it.

    ``pruned``: why it is not read; None: it is, or ``counted`` is the number of its rows, which is
    known and all that is asked for. ``splits``: what tasks read of a hot segment; a cold one's
    rows are in the plan's files.
    """

    segment: Segment
    pruned: PruneReason | None = None
    counted: int | None = None
    splits: tuple[Split, ...] = ()

    @property
    def read(self) -> bool:
        """Whether tasks read of it."""
        return self.pruned is None and self.counted is None

    def __str__(self) -> str:
        one = self.segment
        fate = "read" if self.counted is None else f"not read: it has {self.counted} rows"
        fate = fate if self.pruned is None else f"pruned: {self.pruned}"
        waiting = f", {one.waiting} more behind an open transaction" if one.waiting else ""
        return (
            f"{one.partition.index:>3} {one.ledger_id:>8} {one.state:<9} {one.tier:<10} {fate}; "
            f"{one.reason}; {one.entries} entries{waiting}, {one.bytes} bytes"
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What a query over one snapshot reads of all there is. ``str`` is a report of several lines.

    ``columns``: those that it needs. ``segments``: by partition and ledger, those of the table,
    lost, empty and waiting ones included, as far as the snapshot has them (one from a token has no
    empty or waiting ones). ``cold``: the files of the snapshot's table version;
    they decide what is read of offloaded segments, whose own times say what was to be expected.
    Encrypted entries of the table (``snapshot.ciphertext``) are read beside.
    """

    snapshot: Snapshot
    columns: tuple[str, ...]
    predicates: tuple[Predicate, ...]
    segments: tuple[PlannedSegment, ...]
    cold: tuple[PlannedFile, ...] = ()

    @property
    def topic(self) -> Topic:
        return self.snapshot.topic

    @property
    def version(self) -> int | None:
        """The pinned version of the table; None where it has no part in the answer."""
        return self.snapshot.version

    @property
    def splits(self) -> tuple[Split, ...]:
        """What tasks read of hot segments, by partition and position."""
        return tuple(split for one in self.segments for split in one.splits)

    @property
    def counted(self) -> int:
        """Rows that are counted without being read."""
        return sum(one.counted or 0 for one in self.segments)

    @property
    def files(self) -> int:
        return len(self.cold)

    @property
    def files_read(self) -> int:
        return sum(one.read for one in self.cold)

    @property
    def file_bytes(self) -> int:
        return sum(one.file.bytes for one in self.cold)

    @property
    def file_bytes_read(self) -> int:
        return sum(one.file.bytes for one in self.cold if one.read)

    def restricted(self, *, hot: bool, files: Collection[str] | None) -> Plan:
        """The plan of a query of which more is known: an engine may need less than was planned.

        ``hot``: whether it reads hot segments at all, and the table's encrypted entries beside.
        ``files``: the paths of the table's files that it reads (none: it needs none of the table's
        segments); None: as planned.
        """

        def needed(one: PlannedSegment) -> bool:
            if not one.read:
                return True
            return hot if not one.segment.tier.cold else files is None or len(files) > 0

        unneeded = PruneReason(Pruned.UNNEEDED)
        return replace(
            self,
            snapshot=self.snapshot
            if hot
            else replace(self.snapshot, ciphertext=None, compacted=()),
            segments=tuple(
                one if needed(one) else replace(one, pruned=unneeded, splits=())
                for one in self.segments
            ),
            cold=self.cold
            if files is None
            else tuple(PlannedFile(one.file, one.file.path in files) for one in self.cold),
        )

    def __str__(self) -> str:
        lines = [f"{self.topic}, table version {self.version}", *map(str, self.segments)]
        lines.append(
            f"parquet: {self.files_read} of {self.files} files, "
            f"{self.file_bytes_read} of {self.file_bytes} bytes"
        )
        if self.snapshot.ciphertext is not None:
            count = len(self.snapshot.ciphertext.partitions)
            lines.append(f"the table's encrypted entries of {count} partitions are decrypted")
        lines += [
            f"{one.partition}: below ledger {one.before}, what Pulsar's compaction has kept is read"
            for one in self.snapshot.compacted
        ]
        return "\n  ".join(lines)


def make_plan(
    clients: PlanningClients,
    snapshot: Snapshot,
    columns: Collection[str] | None = None,
    predicates: Sequence[Predicate] = (),
    *,
    bounds: Bounds | None = None,
    parallelism: int = 1,
    describe: bool = True,
    times: bool = False,
) -> Plan:
    """``plan_snapshot`` with what is known of the topic's hot and cold segments.

    ``describe=False`` spares what only people want to know: the table's segments (not its files),
    and learned rows and times of segments that are read anyway. ``times``: those times are wanted
    all the same. Raises NotFoundError where the snapshot's table version is gone.
    """
    settings = clients.settings
    query = settings.query
    useful = describe or times or predicates or (columns is not None and not columns)
    store = PublishTimeStore(query, settings.pulsar, snapshot.topic)
    learned = store.known(snapshot.hot) if useful else {}
    cold = None
    if snapshot.version is not None:
        table = pinned_table(clients.storage, snapshot)
        # Files are in the table's checkpoint; for its segments all commits are read, or the rows.
        cold = cold_part(table) if describe else ColdPart((), table_files(table))
    return plan_snapshot(
        snapshot,
        columns,
        predicates,
        bounds=bounds,
        known=Known(learned, cold, query.clock_skew),
        parallelism=parallelism,
    )


def narrow_plan(
    clients: PlanningClients,
    plan: Plan,
    columns: Collection[str],
    predicates: Sequence[Predicate],
    *,
    parallelism: int = 1,
) -> Plan:
    """Return what is left of a plan for a query that needs less: some columns, rows that may match.

    parallelism: number of tasks that run at once; hot segments are cut into splits for them.
    Files stay as planned.
    """
    query = clients.settings.query
    store = PublishTimeStore(query, clients.settings.pulsar, plan.topic)
    learned = store.known(plan.snapshot.hot) if predicates else {}
    read = {(one.segment.partition.index, one.segment.ledger_id): one for one in plan.segments}
    reasons = _prune_reasons(plan.snapshot.hot, predicates, learned, query.clock_skew)
    ranges = {
        place: EntryRange(one.segment, one.splits[0].first_entry, one.splits[-1].last_entry)
        for place, reason in reasons.items()
        if reason is None and (one := read[place]).splits
    }
    cut = dict(zip(ranges, cut_ranges([*ranges.values()], TASK_BYTES, parallelism), strict=True))
    segments = tuple(
        replace(one, pruned=one.pruned or reasons.get(_place(one)), splits=cut.get(_place(one), ()))
        for one in plan.segments
    )
    return replace(plan, columns=tuple(columns), predicates=tuple(predicates), segments=segments)


def _prune_reasons(
    segments: Sequence[Segment],
    predicates: Sequence[Predicate],
    learned: Learned,
    clock_skew: timedelta | None,
) -> dict[tuple[int, int], PruneReason | None]:
    """Return why each hot segment cannot match, by partition index and ledger; None: it may."""
    found: dict[tuple[int, int], PruneReason | None] = {}
    closed_before: dict[int, int | None] = {}
    for segment in segments:
        place = index, _ = segment.partition.index, segment.ledger_id
        found[place] = prune_reason(
            segment, predicates, learned.get(place), clock_skew, closed_before.get(index)
        )
        closed_before[index] = segment.closed_at
    return found


def plan_snapshot(
    snapshot: Snapshot,
    columns: Collection[str] | None = None,
    predicates: Sequence[Predicate] = (),
    *,
    bounds: Bounds | None = None,
    known: Known | None = None,
    parallelism: int = 1,
) -> Plan:
    """Return the plan of a query for ``columns`` (None: all) of rows that match ``predicates``.

    bounds: what is wanted of a partition; all of a partition that has none. parallelism: number of
    tasks that would run at once.
    """
    wanted = tuple(snapshot.columns.names if columns is None else columns)
    ranges, known = bounds or {}, known or Known()
    learned, cold = known.learned, known.cold
    counting = not wanted and not predicates and not ranges
    hot: list[PlannedSegment] = []
    reasons = _prune_reasons(snapshot.hot, predicates, learned, known.clock_skew)
    for segment, (place, pruned) in zip(snapshot.hot, reasons.items(), strict=True):
        counted = _known_rows(segment, learned.get(place)) if counting and pruned is None else None
        hot.append(PlannedSegment(segment, pruned, counted))
    hot = _with_splits(hot, ranges, parallelism)
    planned = [replace(one, segment=_with_times(one.segment, learned)) for one in hot] + [
        PlannedSegment(one, _unreadable(one)) for one in snapshot.unreadable
    ]
    planned += _offloaded(snapshot, cold, predicates, ranges)
    return Plan(
        snapshot=snapshot,
        columns=wanted,
        predicates=tuple(predicates),
        segments=tuple(sorted(planned, key=_place)),
        cold=plan_files(cold.files, predicates, ranges) if cold else (),
    )


def _place(one: PlannedSegment) -> tuple[int, int]:
    return one.segment.partition.index, one.segment.ledger_id


def _with_splits(
    hot: Sequence[PlannedSegment], bounds: Bounds, parallelism: int
) -> list[PlannedSegment]:
    found: list[PlannedSegment] = []
    ranges: list[EntryRange] = []
    for one in hot:
        wanted = _wanted(one.segment, bounds)
        pruned = one.pruned
        if one.read and wanted is not None:
            ranges.append(wanted)
        elif one.read:
            pruned = PruneReason(Pruned.POSITIONS)
        found.append(replace(one, pruned=pruned))
    cut = iter(cut_ranges(ranges, TASK_BYTES, parallelism))
    return [replace(one, splits=next(cut)) if one.read else one for one in found]


def _wanted(segment: Segment, bounds: Bounds) -> EntryRange | None:
    index, first, last = segment.partition.index, 0, segment.last_entry
    low, high = bounds.get(index, (None, None))
    if low is not None and low.ledger >= segment.ledger_id:
        first = low.entry if low.ledger == segment.ledger_id else last + 1
    if high is not None and high.ledger <= segment.ledger_id:
        last = min(last, high.entry) if high.ledger == segment.ledger_id else -1
    first = max(0, first)
    return EntryRange(segment, first, last) if first <= last else None


def _known_rows(segment: Segment, learned: LearnedTimes | None) -> int | None:
    """How many rows the segment has, where a complete read of just these entries counted them."""
    if learned is None or segment.state != "sealed":
        return None
    exact = learned.first == 0 and learned.last == segment.last_entry
    return learned.messages if exact else None


def _with_times(segment: Segment, known: Learned) -> Segment:
    learned = known.get((segment.partition.index, segment.ledger_id))
    if learned is None or not learned.covers(segment.last_entry) or segment.state != "sealed":
        return segment
    return replace(
        segment, rows=learned.messages, min_publish_time=learned.low, max_publish_time=learned.high
    )


def _unreadable(segment: Segment) -> PruneReason:
    return PruneReason(Pruned.WAITING if segment.waiting else Pruned.EMPTY)


def _offloaded(
    snapshot: Snapshot, cold: ColdPart | None, predicates: Sequence[Predicate], bounds: Bounds
) -> list[PlannedSegment]:
    """The table's segments, and those below the watermark of which the log says nothing."""
    found = {(one.partition, one.ledger_id): one for one in cold.segments} if cold else {}
    for one in snapshot.cold:
        found.setdefault((one.partition, one.ledger_id), one)
    if snapshot.version is None:  # no commit has added a row
        return [PlannedSegment(one, PruneReason(Pruned.EMPTY)) for one in found.values()]
    return [PlannedSegment(one, _cold_pruned(one, predicates, bounds)) for one in found.values()]


def _cold_pruned(
    segment: Segment, predicates: Sequence[Predicate], bounds: Bounds
) -> PruneReason | None:
    if segment.state == "lost":
        return PruneReason(Pruned.LOST)
    if segment.entries == 0 or segment.rows == 0:
        return PruneReason(Pruned.EMPTY)
    if _wanted(segment, bounds) is None:
        return PruneReason(Pruned.POSITIONS)
    recorded = None
    if segment.rows is not None:
        recorded = LearnedTimes(
            segment.partition.index,
            segment.ledger_id,
            0,
            segment.last_entry,
            segment.rows,
            segment.min_publish_time,
            segment.max_publish_time,
        )
    return prune_reason(segment, predicates, recorded)
