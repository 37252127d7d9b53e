"""Working ahead changes when things are made, nothing else."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import closing

import pytest

from reader.ahead import ahead


def test_the_same_items_in_order() -> None:
    assert list(ahead((n for n in range(1000)), 3)) == list(range(1000))
    assert list(ahead((n for n in range(0)), 1)) == []


def test_no_more_than_asked_for_is_made_ahead() -> None:
    made = 0
    asked = threading.Semaphore(0)

    def items() -> Generator[int]:
        nonlocal made
        for n in range(100):
            made += 1
            asked.release()
            yield n

    with closing(ahead(items(), 2)) as found:
        for n in range(20):
            assert next(found) == n
            assert made <= n + 1 + 3
        for _ in range(20):
            assert asked.acquire(timeout=5)


def test_an_error_comes_after_what_was_made_before_it() -> None:
    def items() -> Generator[int]:
        yield 1
        yield 2
        raise KeyError("three")

    found = ahead(items(), 5)
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(KeyError, match="three"):
        next(found)


def test_what_is_given_up_is_closed_before_that_returns() -> None:
    closed = False

    def items() -> Generator[int]:
        nonlocal closed
        try:
            yield from range(1_000_000)
        finally:
            closed = True

    with closing(ahead(items(), 2)) as found:
        assert next(found) == 0
    assert closed
    assert not [one for one in threading.enumerate() if one.name == "ahead"]
