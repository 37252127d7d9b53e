"""Errors of delta-rs in a commit become ours."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from offloader.commit.retry import commit_until_landed
from offloader.model import CommitRetries
from reader.errors import UnavailableError
from reader.model import Topic

TOPIC = Topic("public", "default", "orders")
TABLE: Any = SimpleNamespace(version=7)
NEWER: Any = SimpleNamespace(version=8)


def _commit(attempt: Callable[[object], None]) -> None:
    commit_until_landed(
        TOPIC,
        None,
        attempt=attempt,
        landed=lambda table, version: None,
        newest=lambda: None,
        sleep=lambda seconds: None,
        retries=CommitRetries(),
    )


def test_a_bare_exception_of_delta_rs_is_one_line() -> None:
    def attempt(table: object) -> None:
        raise Exception("Schema error: Duplicate field name (case-insensitive): 'a'")

    with pytest.raises(UnavailableError, match="the table of public/default/orders: Schema error"):
        _commit(attempt)


def test_an_error_of_the_code_itself_is_not_retried() -> None:
    def attempt(table: object) -> None:
        raise KeyError("a bug")

    with pytest.raises(KeyError, match="a bug"):
        _commit(attempt)


@pytest.mark.parametrize("landed", [True, False])
def test_the_log_is_read_before_an_error_is_believed(landed: bool) -> None:
    """A store may apply the PUT, and then answer 500."""
    attempts: list[object] = []

    def attempt(table: object) -> None:
        attempts.append(table)
        raise OSError("HTTP 500")

    def commit() -> object:
        return commit_until_landed(
            TOPIC,
            TABLE,
            attempt=attempt,
            landed=lambda table, version: table if landed else None,
            newest=lambda: NEWER if landed else TABLE,
            sleep=lambda seconds: None,
            retries=CommitRetries(unmoved=3),
        )

    if landed:
        assert commit() is NEWER
        assert len(attempts) == 1
        return
    with pytest.raises(UnavailableError, match="HTTP 500"):
        commit()
    assert len(attempts) == 3
