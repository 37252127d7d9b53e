"""Topics of which a broker cannot show everything, or not yet."""

from collections.abc import Mapping
from typing import Protocol

from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Topic
from reader.pulsar import PartitionLedgers


class MigrationReader(Protocol):
    """The part of the admin API that tells of scalable topics."""

    def is_migrated(self, topic: Topic) -> bool: ...


def migrated_note(admin: MigrationReader, topic: Topic) -> str | None:
    """Return a line about a topic that continues as a scalable topic; None if it does not.

    The line also tells if the role may not ask Pulsar about that.
    """
    try:
        if not admin.is_migrated(topic):
            return None
    except ConfigurationError as error:
        return (
            f"topic {topic} may have been migrated to a scalable topic of Pulsar 5: Pulsar does "
            f"not tell ({error})"
        )
    return (
        f"topic {topic} was migrated to a scalable topic of Pulsar 5: what was published since "
        "then is in its segments, which this version cannot read"
    )


def refuse_recovering(listed: Mapping[Partition, PartitionLedgers]) -> None:
    """Raise UnavailableError where a broker cannot tell yet what open transactions hide."""
    for partition, listing in listed.items():
        if listing.recovering:
            raise UnavailableError(
                f"{partition}: its broker is still recovering the topic's transactions, and "
                "cannot tell which messages may be read",
                hint="try again; transactionBufferStats of Pulsar's admin shows its state",
            )
