"""The topics of a stream by pattern: shadows of topics that it reads are left out."""

from typing import Any

import pytest

from reader.errors import ConfigurationError, UnavailableError
from reader.model import Topic
from reader.stream import stream_options
from reader.stream.tails import PatternTopics


def topic(name: str) -> Topic:
    return Topic("public", "default", name)


class Lists:
    """The topics of a namespace, and which are shadows of which topic."""

    def __init__(self, *names: str, **shadows: str) -> None:
        self.names = [*names, *shadows]
        self.shadows = {topic(name): source for name, source in shadows.items()}
        self.asked: list[str] = []
        self.error: Exception | None = None

    def topics(self, tenant: str, namespace: str) -> list[Topic]:
        return [topic(name) for name in self.names]

    def shadow_source(self, asked: Topic) -> str | None:
        self.asked.append(asked.name)
        if self.error is not None:
            raise self.error
        return self.shadows.get(asked)


class World:
    def __init__(self, lists: Lists, names: str = ".*") -> None:
        self.now, self.lines = 0.0, list[str]()
        clients: Any = type("Clients", (), {"admin": lists})()
        pattern = ("public", "default", names)
        self.topics = PatternTopics(clients, pattern, self.lines.append, lambda: self.now)

    def found(self, at: float) -> list[str]:
        self.now = at
        return [one.name for one in self.topics.current()]


@pytest.mark.parametrize("partition", ["", "-partition-0"])
def test_a_shadow_beside_its_source_is_left_out(partition: str) -> None:
    """Each message would come twice."""
    lists = Lists("a", "b", shadow=f"persistent://public/default/a{partition}")
    world = World(lists)
    assert world.found(0) == ["a", "b"]
    [line] = world.lines
    assert line == (
        "topic public/default/shadow is a shadow of public/default/a, which the stream reads as "
        "well, so it is left out"
    )
    assert world.found(100) == ["a", "b"]
    assert len(world.lines) == 1 and sorted(lists.asked) == ["a", "b", "shadow"]


def test_a_shadow_without_its_source_is_read() -> None:
    assert World(Lists("a", shadow="persistent://public/other/a")).found(0) == ["a", "shadow"]
    source = "persistent://public/default/a"
    assert World(Lists("a", shadow=source), "s.*").found(0) == ["shadow"]


def test_a_topic_that_was_made_again_is_asked_for_again() -> None:
    lists = Lists("a", "b")
    world = World(lists)
    assert world.found(0) == ["a", "b"]
    lists.names = ["a"]
    assert world.found(10) == ["a"]
    lists.names, lists.shadows = ["a", "b"], {topic("b"): "persistent://public/default/a"}
    assert world.found(20) == ["a"]


def test_a_role_that_may_not_ask_reads_all_with_a_warning() -> None:
    lists = Lists("a", shadow="persistent://public/default/a")
    lists.error = ConfigurationError("403")
    world = World(lists)
    assert world.found(0) == ["a", "shadow"]
    [line] = world.lines
    assert "shadows" in line and "403" in line
    assert world.found(10) == ["a", "shadow"]
    assert len(world.lines) == 1


def test_a_broker_that_does_not_answer_is_asked_again() -> None:
    lists = Lists("a", shadow="persistent://public/default/a")
    lists.error = UnavailableError("503")
    world = World(lists)
    with pytest.raises(UnavailableError):
        world.found(0)
    lists.error = None
    assert world.found(1) == ["a"]


def test_a_name_is_matched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An expression may take long, and a namespace may have many topics."""
    lists, matched = Lists("a", "b"), list[str]()
    real = stream_options.matching

    def counted(expression: str, names: Any) -> list[str]:
        matched.extend(names)
        return real(expression, names)

    monkeypatch.setattr("reader.stream.tails.matching", counted)
    world = World(lists, "a.*")
    assert world.found(0) == ["a"]
    lists.names = ["b", "a", "a2"]
    assert world.found(9) == ["a"]
    assert world.found(10) == ["a", "a2"]
    assert matched == ["a", "b", "a2"]
