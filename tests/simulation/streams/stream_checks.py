"""A stream in a world: each row once and in order, or an error with a reason, and never silence.

What it has to tell of is worked out from what the simulated Pulsar did: ledgers that were deleted
before a table had them, where something still says so, and rows that expired unread.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from reader import errors
from reader.model import BEFORE_ALL, Partition, Position
from reader.stream import StreamOffset, StreamOptions
from reader.stream.offsets import PartitionOffset
from reader.stream.stream_options import Place
from testbed.simulation import (
    FailureError,
    Ledger,
    ManagedLedger,
    Row,
    RowKind,
    follow,
    published_rows,
)
from tests.simulation.product.queries import pin
from tests.simulation.product.streams import Batch, SimulatedStream
from tests.simulation.world import TOPIC, World, tries

_LIMITS = (None, None, None, 1, 2, 3, 7)
_PORTION_ROWS = 16
"""More messages than one portion of a source has here."""
_MOST_BATCHES = 2_000
_AWAY = (errors.UnavailableError, errors.UnsupportedError)
"""Errors of a server that is away. A broker that recovers gives nothing, as if it refused to."""
_MAYBE_GIVEN_UP = ("has left Pulsar; a message may begin in it", "with chunks that fit no message")
"""Parts of the errors that name a message which may have been given up since the snapshot."""
_Truth = tuple[dict[Row, Ledger], set[tuple[int, int, int, int]]]
"""(rows that readers may have seen, with their ledger; places that may have one)."""
_NEW_VERSION_MS = 6_000
"""After so long a driver looks for a new version of the table."""


def _no_trouble() -> None:
    """Plan nothing."""


def begin_stream(world: World, a: int, b: int) -> None:
    """A query that begins now, if there is none."""
    options = StreamOptions(
        topics=(TOPIC,),
        max_messages=_LIMITS[a % len(_LIMITS)],
        starting=Place(end="latest" if b % 4 == 3 else "earliest"),
        fail_on_data_loss=a % 4 != 3,
    )
    stream = SimulatedStream(options, world.clock, world.drivers_clock)
    stream.start(world.new_clients())
    begun = world.clock.now_ms
    error = _tried(world, stream.begin)
    if error is not None:
        _require_away(world, error, begun, "a stream cannot begin")
        return
    stream.gone = {ledger.id for ml in _lives(world) for ledger in ml.ledgers if _is_lost(ledger)}
    stream.loads = {ml.name: ml.loads for ml in world.parts}
    expired = _expired(world)
    if expired is not None:
        stream.expired = expired
        world.stream = stream


def restart_stream(world: World) -> None:
    """The driver dies; another one goes on by the checkpoint."""
    if world.stream is not None:
        world.stream.start(world.new_clients())


def read_stream(world: World, *, drain: bool, trouble: Callable[[], None] = _no_trouble) -> None:
    """One micro-batch, or all that there is now. ``trouble`` plans what happens meanwhile."""
    stream = world.stream
    assert stream is not None
    must_tell = _must_tell(world, stream)
    done, told = len(stream.batches), len(stream.told)
    goes_on = not stream.options.fail_on_data_loss
    may_tell, expired = (
        goes_on and _has_reason(world, stream),
        _expired(world) if goes_on else set(),
    )

    def read() -> None:
        stream.finish_planned()
        until = stream.end() if drain else None
        for _ in range(_MOST_BATCHES if drain else 1):
            if not stream.next(until):
                return
        world.require(not drain, "a stream does not come to an end")

    begun = world.clock.now_ms
    try:
        error = _tried_anew(world, read, trouble)
    finally:  # also after a crash: what was lost later cannot be told from what was never sent
        truth = _truth(world)
        _check_batches(world, truth, stream.batches[done:])
        if len(stream.told) > told:
            text = f"a stream tells of a loss without a reason: {stream.told[told:]}"
            world.require(may_tell, text)
            must_tell = []
            stream.expired |= expired or set()
    _check_rows(world, truth, stream)
    for ml, ledger, since, logged in must_tell:
        if not (logged or _is_told(world, stream, ml, ledger, since)):
            continue  # the broker's counter told, and began anew meanwhile
        passed = _at(stream, ml).ledger > ledger.id
        world.require(not passed, f"a stream says nothing of the lost ledger {ledger.id}")
    if error is None:
        return
    if isinstance(error, _AWAY) or _is_simulated(error):
        _require_away(world, error, begun, "a stream fails")
        return
    world.require(_has_reason(world, stream), f"a stream fails without a reason: {error}")
    world.stream = None


def replay_batch(world: World, a: int, trouble: Callable[[], None] = _no_trouble) -> None:
    """A micro-batch that was done is run again: the same rows, or an error with a reason.

    ``trouble`` plans what happens meanwhile.
    """
    stream = world.stream
    if stream is None or not stream.batches:
        return
    start, end, rows = stream.batches[a % len(stream.batches)]
    found: list[Row] = []
    begun = world.clock.now_ms

    def read() -> None:
        found[:] = stream.read(start, end)

    error = _tried_anew(world, read, trouble)
    if error is None:
        (required, optional), late = _truth(world), _came_late(world)
        more, less = Counter(found) - Counter(rows), Counter(rows) - Counter(found)
        # Chunks that come after their message was given up are rows only of who reads them later.
        new = {row for row in required.keys() - set(rows) if row[0] in late and more[row] == 1}
        wrong = [row for row in more.keys() - new if row[0] not in optional]
        untold = _untold(world, stream, start, end) if less else set()
        wrong += [row for row in less if row[0] not in optional | untold]
        if stream.told:  # it goes on without rows that are lost; a driver tells of each loss once
            now = _readable(world)
            wrong = [row for row in wrong if row not in rows or row in (now or ())]
        world.require(not wrong, f"a batch that is run again has other rows: {wrong[:4]}")
    elif isinstance(error, _AWAY):
        _require_away(world, error, begun, "a batch cannot be run again")
    else:
        now = _readable(world)
        gone = now is None or any(row not in now for row in rows)
        gone = gone or _has_expired(world, start, end if rows else None)
        before = any(_is_gone(ml, start.of(_partition(ml)).at.ledger) for ml in _lives(world))
        # Lost before it was read for the first time, and told of since.
        inside = isinstance(error, (errors.NotFoundError, errors.ConfigurationError)) and any(
            start.of(_partition(ml)).at.ledger < one.id <= end.of(_partition(ml)).at.ledger
            for ml in _lives(world)
            for one in ml.ledgers
            if _is_lost(one)
        )
        world.require(
            gone or before or inside or _has_reason(world, stream),
            f"a batch cannot be run again without a reason: {error}",
        )


def _has_expired(world: World, start: StreamOffset, end: StreamOffset | None) -> bool:
    """Whether a row that lies in a batch has expired: maybe one that the batch did not have, as
    its chunked message was given up later.

    ``end`` is None for a batch without rows: nobody can tell whether it had one, once any row
    behind its start has expired.
    """
    for index, ledger, entry, _ in (row[0] for row in _expired(world) or ()):
        one = Partition(TOPIC, index)
        begins_before = start.of(one).at < Position(ledger, entry)
        if begins_before and (end is None or Position(ledger, entry) <= end.of(one).at):
            return True
    return _has_expired_late(world, start)


def _has_expired_late(world: World, start: StreamOffset) -> bool:
    """Whether a row has expired of a message that was given up behind an offset."""
    begins = _begins(world)
    return any(
        start.of(Partition(TOPIC, place[0])).given_up < begins[place]
        for place, _, kind in _expired(world) or ()
        if kind is RowKind.GIVEN_UP
    )


def _tried(
    world: World, action: Callable[[], object], trouble: Callable[[], None] = _no_trouble
) -> errors.PulsarLakeError | None:
    world.effects.reset()
    trouble()
    error = tries(action)
    assert error is None or isinstance(error, errors.PulsarLakeError)
    return error


def _tried_anew(
    world: World, action: Callable[[], object], trouble: Callable[[], None]
) -> errors.PulsarLakeError | None:
    """Try an action again if its error says that a message may have been given up meanwhile.

    The same driver tries it, once it looks for a new version of the table: the message was given
    up, and the ledger trimmed in which it begins, since the version that the driver knows.
    """
    error = _tried(world, action, trouble)
    if error is None or isinstance(error, _AWAY):
        return error
    if not any(text in error.message for text in _MAYBE_GIVEN_UP):
        return error
    world.clock.advance(_NEW_VERSION_MS)
    return _tried(world, action)


def _is_simulated(error: BaseException | None) -> bool:
    """Return whether a planned failure is what an error comes from."""
    while error is not None and not isinstance(error, FailureError):
        error = error.__cause__
    return error is not None


def _require_away(world: World, error: Exception, begun_ms: int, what: str) -> None:
    """Require that a server was away, or failed as planned, since ``begun_ms`` (simulated)."""
    away = any(ml.recovering_ms > begun_ms for ml in world.parts)
    failed = world.effects.met and _is_simulated(error)  # else ledgers only moved meanwhile
    away = away or failed or bool(world.outages.met) or world.state.bookies_down
    world.require(away, f"{what} without a reason: {error}")


# -- what there was to read --------------------------------------------------------------------


def _partition(ml: ManagedLedger) -> Partition:
    return Partition(TOPIC, ml.index)


def _offset(stream: SimulatedStream, ml: ManagedLedger) -> PartitionOffset:
    return stream.at.of(_partition(ml))


def _at(stream: SimulatedStream, ml: ManagedLedger) -> Position:
    return _offset(stream, ml).at


def _lives(world: World) -> list[ManagedLedger]:
    """The partitions that there are, and those that were deleted."""
    return [*world.topic.gone, *world.parts]


def _is_over(since: PartitionOffset, ml: ManagedLedger) -> bool:
    """Whether a partition was deleted, and nothing of another life of it was read by ``since``."""
    return since.created_at == ml.created and not ml.listing


def _truth(world: World) -> _Truth:
    required: dict[Row, Ledger] = {}
    optional = set()
    for ml in _lives(world):
        end = ml.max_read if ml.listing else (1 << 62, 0)
        for row, ledger, _, sure in published_rows(ml):
            if (ledger.id, row[0][2]) > end and not ledger.cold:
                continue
            if sure:
                required[row] = ledger
            else:
                optional.add(row[0])
    return required, optional


def _is_lost(ledger: Ledger) -> bool:
    return ledger.deleted and bool(ledger.entries) and not ledger.cold


def _is_gone(ml: ManagedLedger, ledger_id: int) -> bool:
    return any(one.id == ledger_id and one.deleted and not one.cold for one in ml.ledgers)


def _readable(world: World) -> set[Row] | None:
    """What a query has now; None where it cannot tell."""
    clients, found = world.lenient_clients(), set[Row]()
    world.effects.reset()
    error = tries(lambda: found.update(pin(clients, TOPIC).rows(clients)))
    return found if error is None else None


def _expired(world: World) -> set[Row] | None:
    """Of what was published, the rows that have expired; None where nobody can tell."""
    if not world.settings.retention_hours:
        return set()
    now = _readable(world)
    if now is None:
        return None
    return {row for row, ledger in _truth(world)[0].items() if row not in now and ledger.cold}


# -- what is checked ---------------------------------------------------------------------------


def _check_batches(world: World, truth: _Truth, batches: list[Batch]) -> None:
    """Require that each row was published, and lies within its batch."""
    required, optional = truth
    for start, end, rows in batches:
        for row in rows:
            (index, ledger, entry, _), _, kind = row
            one = Partition(TOPIC, index)
            inside = start.of(one).at < Position(ledger, entry) <= end.of(one).at
            world.require(inside or kind is RowKind.GIVEN_UP, f"a row out of its batch: {row}")
            known = row in required or row[0] in optional
            world.require(known, f"a stream has a row that nobody sent: {row}")


def _check_rows(world: World, truth: _Truth, stream: SimulatedStream) -> None:
    """Require that no row came twice, and that the stream has passed none."""
    required, optional = truth
    rows = [row for _, _, batch in stream.batches for row in batch]
    twice = [place for place, n in Counter(row[0] for row in rows).items() if n > 1]
    world.require(not set(twice) - optional, f"a stream has rows twice: {twice}")
    for row in _unread(world, stream, required, optional) - stream.expired:
        _, ledger, entry, _ = row[0]
        at = stream.at.of(Partition(TOPIC, row[0][0])).at
        lost = _is_lost(required[row])
        world.require(lost or Position(ledger, entry) > at, f"a stream has passed {row}")
    most = stream.options.max_messages
    if most is not None:
        world.require(
            stream.held <= most + _PORTION_ROWS,
            f"the planner holds {stream.held} messages for batches of {most}",
        )


def _unread(
    world: World,
    stream: SimulatedStream,
    required: dict[Row, Ledger],
    optional: set[tuple[int, int, int, int]],
) -> set[Row]:
    """Rows behind where the stream began that are in none of its batches: messages, and what was
    given up of those that begin up to where its offset says."""
    read = {row for _, _, batch in stream.batches for row in batch}
    begins = _begins(world)
    found = set()
    for row in required.keys() - read:
        (index, ledger, entry, _), _, kind = row
        one = Partition(TOPIC, index)
        began, given_up = stream.began.of(one).at, stream.at.of(one).given_up
        behind = Position(ledger, entry) > began and ledger not in stream.gone
        due = kind is RowKind.MESSAGE
        due = due or (kind is RowKind.GIVEN_UP and begins[row[0]] <= given_up)
        if behind and due and row[0] not in optional:
            found.add(row)
    return found


def _untold(
    world: World, stream: SimulatedStream, start: StreamOffset, end: StreamOffset
) -> set[tuple[int, int, int, int]]:
    """Return the places of rows in lost ledgers of which nothing tells a batch.

    Of the one in which the batch ends it is always told.
    """
    return {
        row[0]
        for ml in _lives(world)
        for row, ledger, _, _ in published_rows(ml)
        if _is_lost(ledger)
        and ledger.id != end.of(_partition(ml)).at.ledger
        and not _is_told(world, stream, ml, ledger, start.of(_partition(ml)))
    }


def _came_late(world: World) -> set[tuple[int, int, int, int]]:
    """Return the places of chunks that came after their message was given up."""
    found = set()
    for ml in _lives(world):
        given_up = set()
        for step in follow(ml):
            if step.position in ml.given_up:
                given_up.add(step.uuid)
            elif step.outcome == "stray" and step.uuid in given_up:
                found.add((ml.index, *step.position, -1))
    return found


def _begins(world: World) -> dict[tuple[int, int, int, int], Position]:
    """Return where each chunked message begins, by the place of each of its chunks."""
    return {
        (ml.index, *step.position, -1): Position(*step.chunks[0][0])
        for ml in _lives(world)
        for step in follow(ml)
        if step.chunks
    }


def _must_tell(
    world: World, stream: SimulatedStream
) -> list[tuple[ManagedLedger, Ledger, PartitionOffset, bool]]:
    """Lost ledgers with messages that the stream has not read, of which something still tells;
    where the stream is; and whether a commit tells."""
    required, optional = _truth(world)
    unread = {row[0][1] for row in _unread(world, stream, required, optional)}
    return [
        (ml, ledger, _offset(stream, ml), _is_logged(ml, ledger))
        for ml in _lives(world)
        for ledger in ml.ledgers
        if _is_lost(ledger)
        and ledger.id in unread
        and Position(ledger.id, len(ledger.entries) - 1) > _at(stream, ml)
        and _is_told(world, stream, ml, ledger, _offset(stream, ml))
    ]


def _is_told(
    world: World, stream: SimulatedStream, ml: ManagedLedger, lost: Ledger, since: PartitionOffset
) -> bool:
    """Whether something tells who reads on from ``since`` of a lost ledger behind it."""
    at = since.at
    if at.ledger < ml.ledgers[0].id:
        at = BEFORE_ALL  # of an earlier topic of the same name
    if not ml.listing:
        return _is_over(since, ml)
    if _is_logged(ml, lost):
        return True
    if at != BEFORE_ALL:
        # The one that was read is gone, too; where the log has forgotten, it counts as offloaded.
        forgotten = at.ledger <= world.forgotten.get(ml.created, -1)
        return _is_gone(ml, at.ledger) and not forgotten
    first = next((one.id for one in ml.ledgers if one.cold), lost.id + 1)
    # The broker's counter tells, unless it began anew.
    counted = (
        stream.loads.get(ml.name, ml.loads) == ml.loads
        or not stream.began.of(_partition(ml)).missing
    )
    return lost.id < first and lost.load == ml.loads and counted


def _is_logged(ml: ManagedLedger, lost: Ledger) -> bool:
    """Whether a commit has recorded the loss, or has named the first ledger of it as the next."""
    expected = next((one for one in ml.ledgers if one.id == ml.expected), None)
    named = expected is not None and _is_lost(expected) and expected.id <= lost.id
    return named or lost.id == ml.stepped_over


def _has_reason(world: World, stream: SimulatedStream) -> bool:
    """Whether something that the stream has not read is gone, or may be."""
    return any(_reasons(world, stream))


def _reasons(world: World, stream: SimulatedStream) -> Iterator[bool]:
    for ml in _lives(world):
        at = _at(stream, ml)
        yield _is_over(_offset(stream, ml), ml)
        yield _is_gone(ml, at.ledger)  # what followed may be gone, too
        yield bool(ml.broken)  # a message that ends behind it has lost its beginning
        for ledger in ml.ledgers:
            last = Position(ledger.id, len(ledger.entries) - 1)
            # What a commit knows of is told to whoever begins later, too.
            known = ledger.id not in stream.gone or ml.watermark is not None
            yield _is_lost(ledger) and last > at and known
    expired = _expired(world)
    if expired is None:
        yield True
        return
    for index, number, entry, _ in (row[0] for row in expired - stream.expired):
        yield Position(number, entry) > stream.at.of(Partition(TOPIC, index)).at
    yield _has_expired_late(world, stream.at)
