"""What the drivers of Pulsar's tiered storage call the objects of a ledger.

Sources: ``DataBlockUtils`` of the jcloud offloader, ``FileSystemManagedLedgerOffloader``, and
``Codec.encode`` for a topic's name in that of its managed ledger.
"""

from dataclasses import dataclass
from urllib.parse import quote_plus

from reader.model import OffloadContext, Partition


@dataclass(frozen=True, slots=True)
class ObjectNames:
    """Paths below the place that a ``[[tiered]]`` names."""

    data: str
    index: str


def jcloud_names(ledger_id: int, context: OffloadContext) -> ObjectNames:
    """Of the drivers for S3, Google Cloud Storage, Azure and Aliyun."""
    data = f"{context.uuid}-ledger-{ledger_id}"
    return ObjectNames(data, f"{data}-index")


def filesystem_names(partition: Partition, ledger_id: int, context: OffloadContext) -> ObjectNames:
    """Of the driver for directories and HDFS."""
    topic = partition.topic
    local = partition.full_name.removeprefix(f"persistent://{topic.tenant}/{topic.namespace}/")
    # As Java's URLEncoder writes it.
    name = quote_plus(local, safe="*").replace("~", "%7E")
    folder = f"{topic.tenant}/{topic.namespace}/persistent/{name}/{ledger_id}-{context.uuid}"
    return ObjectNames(f"{folder}/data", f"{folder}/index")
