"""What one query sees: ledgers, end positions, schemas and table version, fixed together.

Order matters (ledgers first, then the table): a ledger that moves in between is found in the
table; none is missed, none is read twice.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, Self

import pyarrow as pa

from reader.config import EncryptionConfig, ReadConfig
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, SchemaInfo, Segment, Tier, Topic
from reader.model.columns import METADATA
from reader.payload import payload_fields, remember
from reader.plan import completeness
from reader.plan.data_loss import created_ms, refuse_data_loss
from reader.plan.history import check_same_topic, refuse_trimmed
from reader.plan.tier_choice import partition_segments
from reader.private_keys import check_keys
from reader.pulsar import PartitionLedgers
from reader.storage import Storage
from reader.table import TopicTable, require_readable

_PARALLEL_REQUESTS = 8


class PlanningAdmin(completeness.HoldReader, completeness.MigrationReader, Protocol):
    """What planning asks of Pulsar (``reader.pulsar.admin.AdminClient``)."""

    def require_consume(self, topic: Topic) -> None: ...
    def partitions(self, topic: Topic) -> list[Partition]: ...
    def ledgers(self, partition: Partition, *, transactions: bool = True) -> PartitionLedgers: ...
    def schemas(self, topic: Topic) -> tuple[SchemaInfo, ...]: ...


class PlanningClients(Protocol):
    """What planning asks of ``reader.clients.Clients``."""

    @property
    def settings(self) -> ReadConfig: ...
    @property
    def admin(self) -> PlanningAdmin: ...
    @property
    def storage(self) -> Storage: ...
    @property
    def has_storage(self) -> bool: ...
    def newest_table(self, topic: Topic) -> TopicTable | None: ...


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """The encrypted entries in a table's version, of which keys are configured."""

    version: int
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One consistent view of a topic.

    ``version``/``uri``: the pinned Delta table, None where it has no part in the answer.
    ``fields``: the payload columns of the answer (table's first, then those only hot rows have).
    ``cold_columns``: the columns as the table version itself has them.
    ``hot``: segments to read from BookKeeper or the broker, by partition and ledger, none empty.
    ``cold``: segments that the table holds, as far as Pulsar still lists them.
    ``unreadable``: segments above the watermark with nothing to read yet: empty, or waiting.
    ``ciphertext``: rows of the table that are decrypted when they are read.
    ``compacted``: of a compacted view, what is read from Pulsar's compacted ledgers.
    ``schemas``: the schema versions of the registry, and those that the table remembers;
    ``forgotten``: those that the registry does not list.
    ``table``: the pinned version, as it was opened; None in a snapshot that came out of a token.
    ``note``: a line for whoever reads the topic, as that it was migrated to a scalable topic.
    """

    topic: Topic
    uri: str
    version: int | None
    fields: pa.Schema
    cold_columns: pa.Schema
    schemas: tuple[SchemaInfo, ...]
    hot: tuple[Segment, ...]
    cold: tuple[Segment, ...] = ()
    unreadable: tuple[Segment, ...] = ()
    ciphertext: Ciphertext | None = None
    forgotten: tuple[SchemaInfo, ...] = ()
    compacted: tuple[completeness.CompactedPart, ...] = ()
    table: TopicTable | None = field(default=None, compare=False, repr=False)
    note: str | None = field(default=None, compare=False)

    @property
    def created(self) -> dict[int, int]:
        """When the managed ledger of each hot partition was created (µs), by partition index."""
        return creation_times((one.partition, one.created_at) for one in self.hot)

    @property
    def columns(self) -> pa.Schema:
        """All columns of the answer: payload, then metadata."""
        return pa.schema([*self.fields, *METADATA])

    def log_note(self) -> Self:
        """Log the note as a warning, for the user who runs the query; return the snapshot."""
        if self.note is not None:
            logging.getLogger(__name__).warning("%s", self.note)
        return self


def take_snapshot(
    clients: PlanningClients,
    topic: Topic,
    *,
    tiers: str | None = None,
    checked: bool = True,
    compacted: bool = False,
) -> Snapshot:
    """Fix what a query over ``topic`` sees, now.

    ``compacted``: what its compacted view sees, which is more than its own messages.

    ``tiers`` forces one tier: "bookkeeper", "tiered" and "broker" read everything Pulsar still has
    through it, "parquet" reads the table alone. Raises NotFoundError for an unknown topic, and for
    a forced tier that has not all of it;
    UnavailableError where a broker is recovering its transactions; ConfigurationError for one that
    the broker does not let us consume, wherever its rows lie, for one that was offloaded to another
    table than there is at ``storage.uri``, and for one of which messages were lost;
    UnsupportedError for a table of which an external writer has made something else.
    ``checked=False`` leaves out these checks of whether a query may read: to show segments, never
    to read them.
    """
    settings, admin = clients.settings, clients.admin
    forced = None if tiers is None else _tier(tiers)
    uses_pulsar = forced is None or not forced.cold
    uses_table = forced is None or forced.cold
    if checked:
        admin.require_consume(topic)
    listed: Mapping[Partition, PartitionLedgers] = {}
    schemas: tuple[SchemaInfo, ...] = ()
    gone: NotFoundError | None = None
    if uses_pulsar:
        try:
            listed = list_ledgers(admin, admin.partitions(topic))
            # After the ledgers: every listed message's schema version is registered by now.
            schemas = admin.schemas(topic)
        except NotFoundError as error:
            gone = error  # a deleted topic keeps its table
    if checked:
        completeness.refuse_recovering(listed)

    def newest() -> TopicTable | None:
        return clients.newest_table(topic)

    table = newest()
    if table is None and (gone or not uses_pulsar):
        raise gone or NotFoundError(
            f"topic {topic} has no table yet", hint="run: pulsar-lake offload --once " + str(topic)
        )
    note = None
    if checked and any(one.terminated for one in listed.values()):  # as a migration does it
        note = completeness.migrated_note(admin, topic)
    if checked and not settings.query.allow_data_loss:
        uri = clients.storage.table_uri(topic) if clients.has_storage else ""
        table = completeness.held_table(admin, table, listed, uri, newest)
    if table is not None and checked:
        check_same_topic(admin, table, listed)
    if checked and not settings.query.allow_data_loss:
        refuse_data_loss(table, listed, settings.pulsar.lost_ledgers)
    if table is not None and forced is not None and not uses_table:
        refuse_trimmed(table, listed, forced)
    if forced in (Tier.BOOKKEEPER, Tier.TIERED):
        _refuse_elsewhere(topic, listed, forced)
    found = snapshot_of(settings, topic, listed, schemas, table, forced=forced, checked=checked)
    found = replace(found, note=note)
    if not compacted:
        return found
    parts = completeness.compacted_parts(
        table, listed, reads_table=uses_table, allow_missing=settings.query.allow_data_loss
    )
    return replace(found, compacted=parts)


def snapshot_of(
    settings: ReadConfig,
    topic: Topic,
    listed: Mapping[Partition, PartitionLedgers],
    schemas: tuple[SchemaInfo, ...],
    table: TopicTable | None,
    *,
    forced: Tier | None = None,
    checked: bool = True,
) -> Snapshot:
    """What was found, as one value. ``listed`` is not younger than ``table``.

    ``checked``: for reading rows, those of the table's encrypted entries with the keys that are
    configured. Raises ConfigurationError for keys that cannot be used, and as ``require_readable``.
    """
    known = known_schemas(table, schemas)
    segments: list[Segment] = []
    for partition, listing in listed.items():
        watermark, lookback, closed_at = -1, None, None
        if table is not None:
            numbers = table.numbers(partition)
            watermark, lookback = numbers.watermark, numbers.lookback
            closed_at = numbers.closed_at
        segments += partition_segments(
            settings, listing, watermark, lookback, closed_at=closed_at, forced=forced
        )
    uses_table = forced is None or forced.cold
    pinned = table if uses_table and table is not None and not table.is_empty else None
    if pinned is not None and checked:
        require_readable(pinned)
    return Snapshot(
        topic=topic,
        uri=table.uri if table else "",
        version=pinned.version if pinned else None,
        fields=payload_columns(table, known),
        cold_columns=pinned.schema if pinned else pa.schema([]),
        schemas=known,
        forgotten=tuple(one for one in known if one.of_life(0) not in schemas),
        hot=tuple(s for s in segments if not s.tier.cold and s.last_entry >= 0),
        cold=tuple(s for s in segments if s.tier.cold),
        unreadable=tuple(s for s in segments if not s.tier.cold and s.last_entry < 0),
        ciphertext=_ciphertext(settings.encryption, pinned) if checked else None,
        table=pinned,
    )


def pinned_table(storage: Storage, snapshot: Snapshot) -> TopicTable:
    """The table in the snapshot's version. Raises NotFoundError where that is gone."""
    table = snapshot.table or TopicTable.open(storage, snapshot.topic, snapshot.version)
    if table is None:
        raise NotFoundError(f"the table of {snapshot.topic} is gone since the snapshot")
    return table


def _refuse_elsewhere(
    topic: Topic, listed: Mapping[Partition, PartitionLedgers], forced: Tier
) -> None:
    """Both are read by what Pulsar lists of a ledger, which may be the other."""
    for listing in listed.values():
        for one in listing.ledgers:
            there = one.offload is not None if forced is Tier.TIERED else not one.offloaded
            if not there and listing.last_entry(one) >= 0:
                has = "does not have" if forced is Tier.TIERED else "has taken"
                raise NotFoundError(
                    f"tier '{forced}' cannot serve all of {topic}: Pulsar's tiered storage "
                    f"{has} ledger {one.ledger_id}",
                    hint="leave tiers unset: each ledger is read from where it is",
                )


def _tier(name: str) -> Tier:
    try:
        return Tier(name)
    except ValueError as error:
        raise ConfigurationError(
            f"unknown tier {name!r}", hint="one of " + ", ".join(Tier) + ", or none"
        ) from error


def _ciphertext(encryption: EncryptionConfig, table: TopicTable | None) -> Ciphertext | None:
    if not encryption.configured:
        return None
    check_keys(encryption)
    if table is None or table.topic_numbers.ciphertext is None:
        return None
    return Ciphertext(table.version, tuple(table.partitions()))


def list_ledgers(
    admin: PlanningAdmin, partitions: Sequence[Partition], *, transactions: bool = True
) -> dict[Partition, PartitionLedgers]:
    """The ledgers of several partitions, asked for side by side (``AdminClient.ledgers``)."""
    listed = partial(admin.ledgers, transactions=transactions)
    if len(partitions) == 1:  # a thread costs as much as half a request
        return {one: listed(one) for one in partitions}
    with ThreadPoolExecutor(min(_PARALLEL_REQUESTS, max(1, len(partitions)))) as pool:
        return dict(zip(partitions, pool.map(listed, partitions), strict=True))


def creation_times(created: Iterable[tuple[Partition, str]]) -> dict[int, int]:
    """Return the creation times of managed ledgers, in µs by partition index, that are known."""
    found = {}
    for partition, text in created:
        if partition.index not in found and (ms := created_ms(text)):
            found[partition.index] = 1000 * ms
    return found


def known_schemas(table: TopicTable | None, listed: Sequence[SchemaInfo]) -> tuple[SchemaInfo, ...]:
    """Return the schema versions that the table remembers, and those of the registry."""
    return remember(() if table is None else table.schemas, listed)


def payload_columns(table: TopicTable | None, schemas: Sequence[SchemaInfo]) -> pa.Schema:
    """Return the table's payload columns, grown by what the topic's schemas have added since.

    A version that the table remembers has its columns there: they were added before it was
    remembered. So only the other versions are parsed, however many a topic has had.
    """
    if table is None:
        return payload_fields(schemas)
    remembered = {(one.life, one.version): one for one in table.schemas}
    new = []
    for one in schemas:
        known = remembered.get((one.life, one.version))
        if known is None or not known.same_content(one):
            new.append(one)
    # A table whose topic's schemas are gone keeps its columns as they are.
    return payload_fields(new, known=table.payload_schema) if new else table.payload_schema
