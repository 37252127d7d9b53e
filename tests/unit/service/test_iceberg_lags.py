"""Lags of many topics: asked side by side, and not for ever."""

from __future__ import annotations

import threading
import time

import pytest

from offloader.model import IcebergLag
from offloader.service import read_lags
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Topic
from testbed.admin import wait_until

TOPICS = [Topic("a", "b", str(n)) for n in range(40)]


class Asked:
    """Counts who asks at once, and waits for ``together`` of them at the first question."""

    def __init__(self, together: int = 1) -> None:
        self.opened, self.closed = 0, 0
        self._barrier = threading.Barrier(together)
        self._lock = threading.Lock()

    def __call__(self) -> _Reader:
        self.opened += 1
        return _Reader(self)

    def close(self) -> None:
        with self._lock:
            self.closed += 1

    def wait(self) -> None:
        self._barrier.wait(120)


class _Reader:
    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._first = True

    def lag(self, topic: Topic) -> IcebergLag | None:
        if self._first:
            self._first = False
            self._asked.wait()
        if topic.name == "7":
            raise UnavailableError("no catalog")
        return IcebergLag(int(topic.name), 0, 0.0)

    def close(self) -> None:
        self._asked.close()


def test_eight_ask_at_once_each_with_a_catalog_of_its_own() -> None:
    asked = Asked(together=8)
    answer = read_lags(asked, TOPICS, seconds=120)
    for topic in TOPICS:
        if topic.name == "7":
            with pytest.raises(UnavailableError, match="no catalog"):
                answer(topic)
        else:
            assert answer(topic) == IcebergLag(int(topic.name), 0, 0.0)
    assert asked.opened == 8
    wait_until("all to be closed", lambda: asked.closed >= 8, 60, interval=0.01)


def test_few_topics_need_few() -> None:
    asked = Asked(together=2)
    answer = read_lags(asked, TOPICS[:2], seconds=120)
    assert [answer(one) for one in TOPICS[:2]] == [IcebergLag(n, 0, 0.0) for n in (0, 1)]
    assert asked.opened == 2
    read_lags(asked, [])
    assert asked.opened == 2


def test_a_catalog_that_never_answers_is_waited_for_once() -> None:
    """Not for each topic anew."""
    asked = Asked(together=9)  # one more than there are: none gets on
    before = time.monotonic()
    answer = read_lags(asked, TOPICS, seconds=2.0)
    for topic in TOPICS:
        with pytest.raises(UnavailableError, match=r"has not answered within 2 s"):
            answer(topic)
    assert time.monotonic() - before < 60


def test_where_there_is_nothing_to_ask() -> None:
    answer = read_lags(lambda: None, TOPICS)
    assert answer(TOPICS[0]) is None


def test_what_the_settings_have_wrong_is_said_at_once() -> None:
    def opened() -> _Reader:
        raise ConfigurationError("iceberg.options.uri")

    with pytest.raises(ConfigurationError, match="iceberg"):
        read_lags(opened, TOPICS)
