"""What every commit of ours is made of: its marks in ``commitInfo``, and its add actions."""

import uuid
from collections.abc import Iterable, Mapping

from deltalake import CommitProperties, Transaction
from deltalake.transaction import AddAction

from offloader.output import WrittenFile
from reader.table.log import COMMIT_KEY

SOURCE_KEY = "pulsarlake.source"
MAINTENANCE_KEY = "pulsarlake.maintenance"


def commit_properties(
    commit_id: str = "",
    metadata: Mapping[str, str] | None = None,
    transactions: Mapping[str, int] | None = None,
) -> CommitProperties:
    """Return the properties of a commit that is marked as ours.

    commit_id: the commit's id; "": a new one.
    transactions: the numbers of the log that it sets, version by ``appId``.

    delta-rs gets no retries of its own: the log must not have moved since the handle was checked.
    """
    return CommitProperties(
        max_commit_retries=0,
        custom_metadata={**(metadata or {}), COMMIT_KEY: commit_id or uuid.uuid4().hex},
        app_transactions=[Transaction(*one) for one in (transactions or {}).items()] or None,
    )


def add_actions(files: Iterable[WrittenFile], *, data_change: bool) -> list[AddAction]:
    """``data_change``: whether the table's rows are others with these files."""
    return [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={},
            modification_time=file.modified,
            data_change=data_change,
            stats=file.statistics,
        )
        for file in files
    ]
