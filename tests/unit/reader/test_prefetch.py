"""Working ahead changes when things are made, nothing else."""

import threading
from collections.abc import Generator

import pytest

from reader.prefetch import THREAD_NAME, Prefetched


def test_the_same_items_in_order() -> None:
    with Prefetched((n for n in range(1000)), 3) as found:
        assert list(found) == list(range(1000))
    with Prefetched((n for n in range(0)), 1) as found:
        assert list(found) == []
        assert list(found) == []


def test_no_more_than_asked_for_is_made_ahead() -> None:
    made = 0
    asked = threading.Semaphore(0)

    def items() -> Generator[int]:
        nonlocal made
        for n in range(100):
            made += 1
            asked.release()
            yield n

    with Prefetched(items(), 2) as found:
        for n in range(20):
            assert next(found) == n
            assert made <= n + 1 + 2
        for _ in range(20):
            assert asked.acquire(timeout=60)


def test_an_error_comes_after_what_was_made_before_it() -> None:
    def items() -> Generator[int]:
        yield 1
        yield 2
        raise KeyError("three")

    with Prefetched(items(), 5) as found:
        assert [next(found), next(found)] == [1, 2]
        with pytest.raises(KeyError, match="three"):
            next(found)
        with pytest.raises(StopIteration):
            next(found)


def test_it_begins_before_it_is_asked() -> None:
    begun = threading.Event()

    def items() -> Generator[int]:
        begun.set()
        yield 1

    with Prefetched(items(), 1):
        assert begun.wait(60)


def test_what_is_given_up_is_closed_before_that_returns() -> None:
    closed = False

    def items() -> Generator[int]:
        nonlocal closed
        try:
            yield from range(1_000_000)
        finally:
            closed = True

    with Prefetched(items(), 2) as found:
        assert next(found) == 0
    assert closed
    assert not [one for one in threading.enumerate() if one.name == THREAD_NAME]
