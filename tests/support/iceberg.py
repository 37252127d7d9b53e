"""Iceberg tables of the tests: followers of them, and all their rows by PyIceberg alone."""

import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable, Table

from offloader.config import IcebergConfig, OffloadConfig
from offloader.iceberg.follower import IcebergFollower
from reader.model import Topic
from reader.storage import Storage, component
from tests.support.tables import TOPIC, filled

IDENTIFIER = (TOPIC.tenant, TOPIC.namespace, TOPIC.name)


def iceberg_config(kind: str, directory: Path, **settings: Any) -> IcebergConfig:
    """``kind``: of the catalog; "sql" has a database of its own in ``directory``."""
    # The timeout: how long one waits for another's transaction. It is not to end by chance.
    options = {"uri": f"sqlite:///{directory}/catalog.db?timeout=60"} if kind == "sql" else {}
    return IcebergConfig.model_validate({"catalog": kind, "options": options, **settings})


def follower(
    storage: Storage, config: IcebergConfig, *, vacuum_after: str = "7d", **given: Any
) -> IcebergFollower:
    """Where it is told the time, the storage's clock agrees."""
    offload = OffloadConfig.model_validate({"vacuum_after": vacuum_after})
    if "clock_ms" in given:
        told = given["clock_ms"]
        given.setdefault("storage_ms", lambda storage, topic: told())
    return IcebergFollower(storage, config, offload, **given)


def location(storage: Storage, config: IcebergConfig, topic: Topic = TOPIC) -> str:
    """Of the table's directory, as its readers name it."""
    root = storage.root if "://" in storage.root else f"file://{storage.root}"
    names = _names(topic)
    return "/".join((root, "~iceberg", config.name, *names))


def _names(topic: Topic) -> tuple[str, ...]:
    return tuple(map(component, (topic.tenant, topic.namespace, topic.name)))


def iceberg_table(
    storage: Storage, config: IcebergConfig, topic: Topic = TOPIC, *, pointed: bool = False
) -> Table:
    """As a user opens it: by the catalog, or by the pointer. Nothing of the product's is used."""
    given = s3_properties(storage.config.options)
    if pointed:
        return StaticTable.from_metadata(location(storage, config, topic), given)
    properties = {**config.options, **given, "type": config.catalog}
    with load_catalog(config.name, **properties) as catalog:
        return catalog.load_table(
            tuple(map(component, (topic.tenant, topic.namespace, topic.name)))
        )


def iceberg_rows(table: Table) -> list[str]:
    """Every row as text, sorted: as ``all_rows`` gives those of the Delta table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what PyIceberg calls in pyarrow
        found = table.scan().to_arrow().to_pylist()
    return sorted(repr(filled(row)) for row in found)


def snapshot_versions(table: Table) -> list[int | None]:
    """The Delta version that each snapshot says it shows, oldest first."""
    found: list[int | None] = []
    for one in sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0):
        said = one.summary.additional_properties if one.summary else {}
        version = said.get("pulsarlake.delta-version")
        found.append(None if version is None else int(version))
    return found


def s3_properties(options: Mapping[str, str]) -> dict[str, str]:
    """What a user of PyIceberg sets to reach the same S3."""
    names = {
        "endpoint_url": "s3.endpoint",
        "access_key_id": "s3.access-key-id",
        "secret_access_key": "s3.secret-access-key",
        "region": "s3.region",
    }
    return {names[name]: value for name, value in options.items() if name in names}


def follow_all(followers: list[IcebergFollower]) -> None:
    """All at the same time; none fails."""
    together = threading.Barrier(len(followers))
    failures: list[Exception] = []

    def run(one: IcebergFollower) -> None:
        together.wait(120)
        try:
            one.follow(TOPIC)
        except Exception as error:  # noqa: BLE001 - compared below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in followers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
