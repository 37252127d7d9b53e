"""Of many topics some are asked for, of as many namespaces as possible."""

from offloader.check.topic_check import spread
from reader.model import Topic


def test_spread() -> None:
    def named(*names: str) -> list[Topic]:
        return [Topic.parse(name) for name in names]

    topics = named("a/x/1", "a/x/2", "a/x/3", "a/y/1", "b/x/1", "b/x/2")
    assert spread(topics, 3) == named("a/x/1", "a/y/1", "b/x/1")
    assert spread(topics, 5) == named("a/x/1", "a/y/1", "b/x/1", "a/x/2", "b/x/2")
    assert sorted(spread(topics, 99)) == topics
    assert spread([], 3) == []
