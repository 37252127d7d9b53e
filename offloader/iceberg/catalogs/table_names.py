"""What a topic is called in the catalog, and where its metadata are in the storage."""

from offloader.config import IcebergConfig
from reader.errors import UnsupportedError
from reader.model import Topic
from reader.storage import component

METADATA_ROOT = "~iceberg"
"""Below the root of the storage. No topic's table is there: ``~`` is never a name's own."""


def identifier_of(config: IcebergConfig, topic: Topic) -> tuple[str, ...]:
    """Its namespace's levels and its name. What is no letter, digit, "_", "-" or "." is escaped as
    in the paths of tables (``reader.storage.component``), and so is a dot in a namespace: "sql"
    joins its levels with dots. Raises UnsupportedError.

    Two topics may get one name by ``iceberg.namespace`` and ``iceberg.table``, or where a catalog
    does not tell upper from lower case: the follower refuses the second.
    """
    fields = {"tenant": topic.tenant, "namespace": topic.namespace, "topic": topic.name}
    levels = [one.format(**fields) for one in config.namespace.split(".")]
    name = config.table.format(**fields)
    if not all((*levels, name)):
        raise UnsupportedError(f"{topic} has no name in the Iceberg catalog")
    return (*(component(one).replace(".", "~2E") for one in levels), component(name))


def directory_of(config: IcebergConfig, identifier: tuple[str, ...]) -> str:
    """Where a table's metadata are, below the root of the storage."""
    return "/".join((METADATA_ROOT, component(config.name), *identifier))
