"""Reading commits of a Delta log one by one: ``_delta_log/<version>.json``.

delta-rs's own ``history`` lists the log each time and keeps the interpreter's lock while it waits
for the storage. Format: the Delta protocol's "Delta Log Entries" and "Commit Provenance
Information".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from reader.errors import UnavailableError, plain_text
from reader.model import Topic
from reader.storage import Storage

__all__ = ["commit_info", "info_of", "read_commit"]


def commit_info(storage: Storage, topic: Topic, version: int) -> dict[str, Any] | None:
    """The commit info of one version; None where clean-up has removed it.

    Raises UnavailableError when the storage does not answer.
    """
    actions = read_commit(storage, topic, version)
    return None if actions is None else info_of(actions)


def info_of(actions: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The commit info among a commit's actions; empty where there is none."""
    return next((dict(one["commitInfo"]) for one in actions if "commitInfo" in one), {})


def read_commit(storage: Storage, topic: Topic, version: int) -> list[dict[str, Any]] | None:
    """The actions of one version; None where clean-up has removed it. Raises as above."""
    filesystem, directory = storage.directory(topic)
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
    return [json.loads(line) for line in lines]
