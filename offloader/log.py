"""Reading commits of a Delta log one by one: ``_delta_log/<version>.json``.

delta-rs's own ``history`` lists the log each time and keeps the interpreter's lock while it waits
for the storage. Format: the Delta protocol's "Delta Log Entries" and "Commit Provenance
Information".
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from reader.config import StorageConfig
from reader.errors import UnavailableError, plain_text
from reader.model import Topic
from reader.storage import open_filesystem, storage_root, table_uri

__all__ = ["commit_info"]


def commit_info(storage: StorageConfig, topic: Topic, version: int) -> dict[str, Any] | None:
    """The commit info of one version; None where clean-up has removed it.

    Raises UnavailableError when the storage does not answer.
    """
    filesystem, root = open_filesystem(storage)
    directory = root + table_uri(storage, topic).removeprefix(storage_root(storage))
    path = f"{directory}/_delta_log/{version:020d}.json"
    try:
        with filesystem.open_input_stream(path) as source:
            lines = source.read().splitlines()
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException) as error:
        raise UnavailableError(
            f"cannot read {path}: {plain_text(error)}",
            hint="check storage.uri and storage.options",
        ) from error
    for line in lines:
        action = json.loads(line)
        if "commitInfo" in action:
            return dict(action["commitInfo"])
    return {}
