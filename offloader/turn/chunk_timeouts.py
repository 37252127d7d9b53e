"""Chunked messages that are given up: by the broker's clocks alone, and in the log's order.

A message that is incomplete at a watermark is given up once

1. ``chunk_timeout`` has passed since its first chunk was written, by the broker's clocks: the
   answer's time against the earliest time at which that entry is known to have been there (its
   ledger or a later one was closed, the open one was made, an earlier answer listed it). As these
   are the least of all that comes later in the log, they ascend along it;
2. the log as it is now, up to its last entry, does not complete it, and no open transaction may;
3. all that begin before it are given up, too. So the one position that a commit records says it
   all: what begins before it and is incomplete was given up.

Producers' clocks and this host's decide nothing. While sealed ledgers wait to be offloaded, nothing
is given up: the commits up to the last of them say what they complete, and only what has come since
has to be looked through, instead of all that waits, once a commit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from offloader.backlog.policy import filled
from offloader.convert import ChunkSequences, Source, begins_at, look_ahead, lookback_of
from reader.clients import Clients
from reader.decode import ChunkSequence
from reader.model import BEFORE_ALL, Partition, Position
from reader.pulsar import PartitionLedgers

# What one turn gives up, which it does in this process.
MOST_MESSAGES = 16_384
MOST_CHUNKS = 65_536


@dataclass(frozen=True, slots=True)
class _Kept:
    """A message that had timed out, and that the log keeps: no need to look before that can change.

    ``again_at``: when, ms, if it has begun anew; ``undecided``: once this position can be read. Of
    neither: the log completes it, and it waits for its last ledger to be offloaded.
    """

    created_at: str
    begin: Position
    again_at: int | None
    undecided: Position | None

    def holds(self, listing: PartitionLedgers, lookback: Position) -> bool:
        """Whether nothing has changed."""
        same = (self.created_at, self.begin) == (listing.created_at, lookback)
        return same and (self.undecided is None or listing.max_read < self.undecided)


class ChunkTimeouts:
    """Remembers what was seen of the log; each partition for one thread at a time.

    ``source``: where the log is read from. Times are ms since the epoch, by the broker's clocks.
    """

    def __init__(self, clients: Clients, source: Source) -> None:
        self._clients = clients
        self._source = source
        # Up to which entry the log was there, and when that was listed; two of a partition at most.
        self._seen: dict[Partition, list[tuple[Position, int]]] = {}
        self._kept: dict[Partition, _Kept] = {}

    def due_at(
        self, listing: PartitionLedgers, watermark: int, lookback: Position | None, timeout_ms: int
    ) -> int | None:
        """When the oldest incomplete message, which begins at ``lookback``, may be given up.

        None: there is none, it is known that the log keeps it, or ledgers above ``watermark`` have
        to be offloaded before. Reads nothing.
        """
        if lookback is None:
            self._seen.pop(listing.partition, None)
            self._kept.pop(listing.partition, None)
            return None
        self._see(listing, lookback)
        if filled(listing, watermark):
            return None
        kept = self._kept.get(listing.partition)
        if kept and kept.holds(listing, lookback):
            return kept.again_at
        return self._times_out_at(listing, lookback, timeout_ms)

    def given_up(
        self, listing: PartitionLedgers, upto: int, pending: ChunkSequences, timeout_ms: int
    ) -> ChunkSequences:
        """Those of the messages that are given up; ``pending``: incomplete at the end of ``upto``.

        At most MOST_MESSAGES with MOST_CHUNKS, or one message: later turns give up the rest.
        Reads the log only where one has timed out, behind the ledgers that ``listing`` has as
        sealed. Raises what the admin and ``EntrySource.read`` raise.
        """
        oldest = lookback_of(pending)
        # By the turn's list: of a busy topic, some ledger is sealed during each conversion.
        if oldest is None or filled(listing, upto):
            return {}
        if not self._timed_out(listing, pending, timeout_ms):
            return {}
        # As it is now: it may have taken long to convert what comes before.
        now = self._clients.admin.ledgers(listing.partition)
        if now.recovering or now.created_at != listing.created_at:
            return {}
        self._see(now, oldest)
        kept = self._kept.get(now.partition)
        if kept and kept.holds(now, oldest) and not _is_over(now, kept.again_at):
            return {}
        old = self._timed_out(now, pending, timeout_ms)
        if not old:
            return {}
        ends = look_ahead(self._clients, now, upto, old, self._source)
        found: dict[bytes, ChunkSequence] = {}
        entries = 0
        for uuid, chunks in old.items():
            entries += len(chunks)
            if found and (len(found) == MOST_MESSAGES or entries > MOST_CHUNKS):
                break  # the next turn goes on
            end, again_at = ends[uuid], None
            anew = bool(end.chunks) and begins_at(end.chunks) != begins_at(chunks)
            if anew and not end.kept:
                again_at = self._times_out_at(now, begins_at(end.chunks), timeout_ms)
            if end.kept or (anew and not _is_over(now, again_at)):
                kept = _Kept(now.created_at, begins_at(chunks), again_at, end.undecided)
                self._kept[now.partition] = kept
                break
            found[uuid] = chunks
        return found

    def _timed_out(
        self, listing: PartitionLedgers, pending: ChunkSequences, timeout_ms: int
    ) -> Mapping[bytes, ChunkSequence]:
        """Those that began longest ago, in order."""
        if listing.listed_at is None:
            return {}
        then = listing.listed_at - timeout_ms
        end = max((end for end, at in self._known(listing) if at <= then), default=BEFORE_ALL)
        old = {uuid: chunks for uuid, chunks in pending.items() if begins_at(chunks) <= end}
        return dict(sorted(old.items(), key=lambda one: begins_at(one[1])))

    def _times_out_at(
        self, listing: PartitionLedgers, begin: Position, timeout_ms: int
    ) -> int | None:
        """Of a message that ``listing`` has the beginning of; None where nobody tells the time."""
        times = [at for end, at in self._known(listing) if begin <= end]
        if listing.listed_at is not None:
            times.append(listing.listed_at)
        return min(times) + timeout_ms if times else None

    def _known(self, listing: PartitionLedgers) -> Iterator[tuple[Position, int]]:
        """(up to where the log was there, when at the latest)."""
        for one in listing.ledgers:
            if one.closed_at:
                yield Position(one.ledger_id + 1, -1), one.closed_at
        if listing.opened_at and listing.ledgers:
            yield Position(listing.ledgers[-1].ledger_id, -1), listing.opened_at
        yield from self._seen.get(listing.partition, ())

    def _see(self, listing: PartitionLedgers, lookback: Position) -> None:
        """Note that the log was there: when what is waited for was seen first, and its end."""
        if listing.listed_at is None:
            return
        seen = self._seen.get(listing.partition, [])
        end = listing.last_confirmed
        # A turn's list is older than the one that ``given_up`` made in it.
        newest = [] if seen and end <= seen[-1][0] else [(end, listing.listed_at)]
        first = [one for one in seen if one[0] >= lookback]
        self._seen[listing.partition] = [*first[:1], *(newest or first[1:][-1:])]


def _is_over(listing: PartitionLedgers, at: int | None) -> bool:
    return at is not None and listing.listed_at is not None and at <= listing.listed_at
