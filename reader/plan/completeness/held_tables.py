"""Whether the table that a query sees is the one for which the hold was moved.

The hold is moved, and Pulsar deletes, for what one table has. A query that does not see that table,
or an old copy of it, would give hot rows only. The hold names its table and how far it was, but to
ask costs a request for each partition, and mostly there is no need: a table whose last commit
named as the next ledger one that Pulsar still lists has all the ledgers below, as Pulsar deletes in
order. (Unless it waits for a chunked message that begins in one that is gone.)

An offloader that went on with an old copy would make it look complete: the copy's watermark would
pass what the hold says, and what lies between would be in no query. An operator who has nothing
better says so (``LOST_KEY``), and what lies between is recorded as lost.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from reader.errors import ConfigurationError
from reader.model import Partition
from reader.plan.data_loss import UNKNOWN_LEDGER, DataLoss
from reader.pulsar import LOST_KEY, HeldTable, PartitionLedgers
from reader.table import TopicTable

_PARALLEL_REQUESTS = 8


class HoldReader(Protocol):
    """What is asked of Pulsar (``AdminClient``)."""

    def subscription_properties(self, partition: Partition) -> dict[str, dict[str, str]]: ...


def held_table(
    admin: HoldReader,
    table: TopicTable | None,
    listed: Mapping[Partition, PartitionLedgers],
    uri: str,
    newest: Callable[[], TopicTable | None],
) -> TopicTable | None:
    """The table to go on with: ``table``, or what ``newest`` opens where a commit came in between.

    ``listed`` is not younger than ``table``, which lies at ``uri`` ("": there is no storage).
    Raises ConfigurationError where a hold was moved for another table, or was further than it is.
    """
    held = _held(admin, table, listed)
    found = _mismatch(table, listed, held, uri)
    if found is not None:
        table = newest()
        found = _mismatch(table, listed, held, uri)
    if found is not None:
        raise found
    return table


def given_up(
    admin: HoldReader,
    table: TopicTable,
    listed: Mapping[Partition, PartitionLedgers],
    newest: Callable[[], TopicTable | None],
) -> list[DataLoss]:
    """What operators have given up of a table that is an old copy: to be recorded by its commit.

    ``listed`` is not younger than ``table``; ``newest`` opens it again, as another offloader may
    have committed. Raises ConfigurationError for an old copy that nobody has said that of.
    """
    held = [
        (partition, name, one)
        for partition, name, one in _held(admin, table, listed)
        if one.is_of(table.uri, table.id) and one.reached > table.watermark(partition)
    ]
    again = newest() if held else None
    if again is None or again.id != table.id:
        again = table
    losses = []
    for partition, name, one in held:
        if one.reached <= again.watermark(partition):
            continue
        if one.watermark > one.lost_upto:
            raise _old_copy(again, partition, name, one)
        losses.append(_loss(again, listed[partition], one))
    return [one for one in losses if one is not None]


def _loss(table: TopicTable, listing: PartitionLedgers, held: HeldTable) -> DataLoss | None:
    """What lies between ``table`` and the first ledger that is still there, if there is one."""
    partition = listing.partition
    watermark, following = table.watermark(partition), _next(table, partition)
    before = next((one.ledger_id for one in listing.ledgers if one.ledger_id > watermark), None)
    if before is None:
        return None
    if following is None:
        return DataLoss(partition, UNKNOWN_LEDGER, before)
    first = min(following, held.reached)
    return DataLoss(partition, first, before) if first < before else None


def _mismatch(
    table: TopicTable | None,
    listed: Mapping[Partition, PartitionLedgers],
    held: Sequence[tuple[Partition, str, HeldTable]],
    uri: str,
) -> ConfigurationError | None:
    """What the holds say against ``table``; None: nothing."""
    ours = table is not None and (
        _of_same(table, listed) or any(one.id == table.id for _, _, one in held)
    )
    for partition, name, one in held:
        says = f"subscription {name} of {partition} was moved for the table at {one.uri}"
        if table is None:
            here = f"there is none at {uri}" if uri else "no storage is configured"
            return ConfigurationError(f"{says}, but {here}", hint=_HINT)
        if one.is_of(table.uri, table.id):
            if one.reached > table.watermark(partition):
                return _old_copy(table, partition, name, one)
        elif one.uri == table.uri or not ours:
            return ConfigurationError(
                f"{says} with the id {one.id}, but the one at {table.uri} has the id {table.id}",
                hint=_HINT,
            )
    return None


def _old_copy(
    table: TopicTable, partition: Partition, name: str, held: HeldTable
) -> ConfigurationError:
    return ConfigurationError(
        f"subscription {name} of {partition} was moved for the table at {held.uri or table.uri}, "
        f"which had its ledgers up to {held.reached}; the table at {table.uri} has them up to "
        f"{table.watermark(partition)}",
        hint="an old copy of it, or one that was restored to an old version: restore a newer one; "
        "what lies between may be gone from Pulsar. If there is none, set the subscription's "
        f"property {LOST_KEY}={held.reached} (docs/operations.md)",
    )


def _of_same(table: TopicTable, listed: Mapping[Partition, PartitionLedgers]) -> bool:
    """Whether some partition has the managed ledger that the table was filled from."""
    return any(
        listing.created_at and table.created_at(one) == listing.created_at
        for one, listing in listed.items()
    )


_HINT = (
    "set storage.uri and storage.options as the offloader has them, and mount what it mounts; "
    "query.allow_data_loss = true reads what there is"
)


def _is_subscribed(listing: PartitionLedgers) -> bool:
    return any(not name.startswith("__") for name in listing.cursors)  # Pulsar's own


def _has_all(table: TopicTable, listing: PartitionLedgers) -> bool:
    """Whether the ledger that was to follow the watermark, at its commit, is still there, and the
    one where the first message begins that was to be waited for."""
    if not _of_same(table, {listing.partition: listing}):
        return False
    there = {one.ledger_id for one in listing.ledgers}
    lookback = table.numbers(listing.partition).lookback
    return _next(table, listing.partition) in there and (not lookback or lookback.ledger in there)


def _next(table: TopicTable, partition: Partition) -> int | None:
    return table.numbers(partition).expected or table.numbers(partition).open_ledger


def _held(
    admin: HoldReader, table: TopicTable | None, listed: Mapping[Partition, PartitionLedgers]
) -> list[tuple[Partition, str, HeldTable]]:
    """The holds that name a table, with their subscriptions, where ``table`` may not have all;
    asked for side by side."""
    partitions = [
        one
        for one, listing in listed.items()
        if _is_subscribed(listing) and not (table is not None and _has_all(table, listing))
    ]
    with ThreadPoolExecutor(min(_PARALLEL_REQUESTS, max(1, len(partitions)))) as pool:
        found = zip(partitions, pool.map(admin.subscription_properties, partitions), strict=True)
        return [
            (partition, name, held)
            for partition, some in found
            for name, properties in some.items()
            if (held := HeldTable.of(properties, partition)) is not None
        ]
