"""Topics whose ledgers Pulsar has offloaded, with BookKeeper's copies deleted."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from offloader.config import Config
from reader.clients import Clients
from reader.errors import NotFoundError
from reader.model import LedgerMetadata, Partition, Topic
from reader.plan import list_ledgers
from reader.sources import StoredEntries
from testbed.admin import wait_until
from testbed.tiered import TieredStorage

_AT_ONCE = 8


def stored_by_bookies(config: Config, topic: str) -> dict[Partition, list[LedgerMetadata]]:
    """BookKeeper's metadata of each closed ledger, while it is listed."""
    with Clients(config) as clients:
        partitions = clients.admin.partitions(Topic.parse(topic))
        listed = list_ledgers(clients.admin, partitions)
        return {
            partition: [
                one.metadata
                for one in listing.ledgers
                if one.metadata is not None and one.metadata.closed and not one.offloaded
            ]
            for partition, listing in listed.items()
        }


def without_copies(
    config: Config, ledgers: Iterable[tuple[Partition, LedgerMetadata]], timeout: float = 240
) -> None:
    """Wait until no bookie has any entry of them."""
    with Clients(config) as clients:
        for partition, metadata in ledgers:
            entries = StoredEntries(clients, partition, {metadata.ledger_id: metadata})
            wait_until(
                f"bookies to delete ledger {metadata.ledger_id}",
                partial(_is_gone, entries, metadata.ledger_id),
                timeout,
            )


def _is_gone(entries: StoredEntries, ledger_id: int) -> bool:
    try:
        list(entries.read(ledger_id, 0, 0))
    except NotFoundError:
        return True
    return False


def move(config: Config, tiered: TieredStorage, topic: str) -> None:
    """Pulsar offloads all closed ledgers of a topic; only its objects are left of them."""
    move_all(config, tiered, [topic])


def move_all(config: Config, tiered: TieredStorage, topics: Iterable[str]) -> None:
    """The same side by side, and the bookies are waited for once."""

    def offload(topic: str) -> list[tuple[Partition, LedgerMetadata]]:
        stored = stored_by_bookies(config, topic)
        tiered.offload(topic)
        return [(partition, one) for partition, some in stored.items() for one in some]

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        before = list(pool.map(offload, topics))
    without_copies(config, [one for some in before for one in some])
