"""Options of a stream: what is taken, and what is told of the rest."""

from datetime import timedelta
from itertools import count

import pytest

from reader.errors import ConfigurationError
from reader.model import Position, Topic
from reader.stream import StreamOffset
from reader.stream.stream_options import Place, StreamOptions, matching

FLIGHTS, B = Topic("public", "default", "flights"), Topic("a", "b", "c")


def test_names_are_taken_in_any_case() -> None:
    found = StreamOptions.of(
        {
            "TOPIC": "flights",
            "startingposition": "Earliest",
            "maxBytesPerTrigger": "2g",
            "maxMessagesPerTrigger": "1000",
            "maxTriggerDelay": "30s",
            "failOnDataLoss": "false",
        }
    )
    assert found.topics == (FLIGHTS,)
    assert found.starting == Place(end="earliest")
    assert (found.max_bytes, found.max_messages) == (2 << 30, 1000)
    assert found.max_delay == timedelta(seconds=30)
    assert not found.fail_on_data_loss


def test_a_pattern_matches_whole_names() -> None:
    names = ["orders", "Orders", "orders-eu", "x", "xorders", "x\norders", "ordersé"]
    assert matching("orders|x", names) == ["orders", "x"]
    assert matching("(?i)orders", names) == ["orders", "Orders"]
    assert matching(r"orders[^a-z]?.*", names) == ["orders", "orders-eu", "ordersé"]
    assert matching("(?m)^orders$", names) == ["orders"]


@pytest.mark.parametrize("given", ["(a+)+b", "(a|a)*b", "(a*)*b", ".*.*.*.*.*.*x"])
def test_no_pattern_takes_longer_than_names_are_long(given: str) -> None:
    """Python's own expressions take four times as long for two letters more: days for these."""
    assert matching(given, ["a" * 100_000]) == []


def test_a_pattern_has_five_seconds_for_all_names() -> None:
    """And the error names it, and how far it came."""
    ticks = count(0.0, 0.1)
    names = [f"orders-{n}" for n in range(10_000)]
    with pytest.raises(
        ConfigurationError, match=r"topicsPattern 'orders\.\*' takes too long"
    ) as caught:
        matching("orders.*", names, lambda: next(ticks))
    assert "only 1600 of 10000 names were matched within 5 s" in caught.value.message
    assert matching("orders.*", names) == names


@pytest.mark.parametrize("given", ["a)|(b", "(", "(?=a)b", r"(a)\1", "a{1001}"])
def test_what_is_no_pattern_is_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match="no regular expression of RE2"):
        StreamOptions.of({"topicsPattern": f"a/b/{given}"})


def test_topics_and_patterns() -> None:
    assert StreamOptions.of({"topics": "flights, a/b/c"}).topics == (FLIGHTS, B)
    assert StreamOptions.of({"topicsPattern": "a/b/x-.*"}).pattern == ("a", "b", "x-.*")
    assert StreamOptions.of({"topicsPattern": "x.*"}).pattern == ("public", "default", "x.*")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("latest", Place(end="latest")),
        ("1970-01-01T00:00:01Z", Place(time=1_000_000)),
        ("1970-01-02", Place(time=86_400_000_000)),
        ('{"0": "7:20", "1": "latest"}',
         Place(positions={(None, 0): Position(7, 20), (None, 1): "latest"})),
        ('{"a/b/c": {"-1": "7:20"}}', Place(positions={(B, -1): Position(7, 20)})),
        (StreamOffset({}).to_json(), Place(offset=StreamOffset({}))),
    ],
)  # fmt: skip
def test_places(text: str, place: Place) -> None:
    assert StreamOptions.of({"topic": "x", "startingPosition": text}).starting == place


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name one of the options topic, topics, topicsPattern"),
        ({"topic": "x", "topicsPattern": "y"}, "name one of the options"),
        ({"topic": "x", "topics": "y"}, "both topic and topics"),
        ({"topic": "x,y"}, "the option topic names one topic"),
        ({"topic": "x", "startingOffsets": "latest"}, "a stream has no option startingOffsets"),
        ({"topic": "x", "startingPosition": "soon"}, "option startingPosition: 'soon' is none of"),
        ({"topic": "x", "startingPosition": '{"0": 7}'}, "option startingPosition: a position is"),
        ({"topic": "x", "startingPosition": "{"}, "option startingPosition: positions are no JSON"),
        ({"topic": "x", "startingPosition": '{"0": "1:-5"}'}, "a position is \"ledger:entry\""),
        ({"topic": "x", "endingPosition": '{"0": "earliest"}'}, "endingPosition earliest"),
        ({"topic": "x", "endingPosition": "earliest"}, "endingPosition earliest"),
        ({"topic": "x", "maxMessagesPerTrigger": "0"}, "option maxMessagesPerTrigger: "),
        ({"topic": "x", "maxBytesPerTrigger": "many"}, "option maxBytesPerTrigger: "),
        ({"topicsPattern": "a/b/("}, "topicsPattern is no regular expression"),
        ({"topicsPattern": "a/b"}, "topicsPattern is tenant/namespace/regular-expression"),
        ({"topic": "x", "minMessagesPerTrigger": "9", "maxMessagesPerTrigger": "3"},
         "minMessagesPerTrigger is above"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message.replace("(", r"\(")):
        StreamOptions.of(options)
