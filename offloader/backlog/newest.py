"""What of a topic is not in its table, and the newest of two such. Pure.

Whoever asks Pulsar or reads a table's log comes by one of two things: lists of ledgers, and
watermarks. A backlog is the one less the other; so newer watermarks, of this process or of another,
need no new lists, and newer lists no other watermarks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from offloader.backlog.policy import filled, sealed
from offloader.model import Backlog, TopicBacklog
from reader.model import Partition
from reader.pulsar import PartitionLedgers


def topic_backlog(
    listed: Iterable[PartitionLedgers],
    watermarks: Mapping[Partition, int],
    *,
    at: float,
    asked: float,
    read: float,
    version: int | None,
    subscription: str,
) -> TopicBacklog:
    """Of ``listed`` what is above ``watermarks`` (none: -1); the other values are its own."""
    marks = [(one, watermarks.get(one.partition, -1)) for one in listed]
    return TopicBacklog(
        at=at,
        asked=asked,
        read=read,
        version=version,
        partitions=tuple(_backlog(one, mark, subscription) for one, mark in marks),
        listed=tuple(_above(one, mark) for one, mark in marks),
        subscription=subscription,
    )


def backlog_after(
    known: TopicBacklog, watermarks: Mapping[Partition, int], *, version: int, read: float
) -> TopicBacklog:
    """The same lists, after commits that have set ``watermarks``, up to ``version``."""
    before = {one.partition: one.watermark for one in known.partitions}
    return _with(known, {**before, **watermarks}, version, read)


def newest_backlog(known: TopicBacklog | None, found: TopicBacklog) -> TopicBacklog:
    """The newer lists of the two, less the newer watermarks of the two."""
    if known is None:
        return found
    lists = found if found.asked >= known.asked else known
    table = found if found.read >= known.read else known
    if lists is table:
        return lists
    marks = {one.partition: one.watermark for one in (*lists.partitions, *table.partitions)}
    return _with(lists, marks, table.version, table.read)


def _with(
    lists: TopicBacklog, watermarks: Mapping[Partition, int], version: int | None, read: float
) -> TopicBacklog:
    return topic_backlog(
        lists.listed,
        watermarks,
        at=lists.at,
        asked=lists.asked,
        read=read,
        version=version,
        subscription=lists.subscription,
    )


def _backlog(listing: PartitionLedgers, watermark: int, subscription: str) -> Backlog:
    ready = sealed(listing, watermark)
    waiting = filled(listing, watermark)
    closed = [one.closed_at for one in waiting]
    above = [one for one in listing.ledgers if one.ledger_id > watermark]
    # Another process may have offloaded by now what was open when it was listed.
    passed = listing.ledgers and listing.ledgers[-1].ledger_id <= watermark
    open_bytes = 0 if passed else listing.open_bytes
    return Backlog(
        partition=listing.partition,
        watermark=watermark,
        hold=listing.cursors.get(subscription),
        ledgers=len(waiting),
        sealed=sum(one.bytes for one in waiting),
        unsealed=sum(one.bytes for one in above[len(ready) :]) + open_bytes,
        oldest_ms=min((at or 0 for at in closed), default=None),
        closed_ms=min((at for at in closed if at is not None), default=None),
        tiered=sum(one.offloaded for one in waiting),
    )


def _above(listing: PartitionLedgers, watermark: int) -> PartitionLedgers:
    """What a watermark can still pass: of a long topic the lists are most of all that is known.

    The last ledger stays: it is the open one, whatever the watermark says.
    """
    last = listing.ledgers[-1:]
    kept = tuple(one for one in listing.ledgers[:-1] if one.ledger_id > watermark)
    return replace(listing, ledgers=(*kept, *last))
