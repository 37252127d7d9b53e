import pickle

import pytest

from reader.errors import ConfigurationError, CorruptError, PulsarLakeError
from reader.model import LedgerMetadata, Partition, Position, Topic


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("persistent://a/b/c", Topic("a", "b", "c")),
        ("a/b/c", Topic("a", "b", "c")),
        ("c", Topic("public", "default", "c")),
        (" a/b/c ", Topic("a", "b", "c")),
        ("a/b/c/d", Topic("a", "b", "c/d")),
        ("a/b/c-partition-x", Topic("a", "b", "c-partition-x")),
    ],
)
def test_topic_names(text: str, expected: Topic) -> None:
    assert Topic.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "a/b", "/b/c", "a//c", "http://a/b/c", "non-persistent://a/b/c"]
)
def test_names_that_are_no_topic(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Topic.parse(text)
    assert caught.value.hint


def test_rest_path_is_percent_encoded() -> None:
    assert Topic("t", "n", "a b/c%é").rest_path == "t/n/a%20b%2Fc%25%C3%A9"
    assert Partition(Topic("t", "n", "a"), 3).rest_path == "t/n/a-partition-3"


def test_partition_names_go_both_ways() -> None:
    for text in ("persistent://a/b/c-partition-12", "persistent://a/b/c"):
        assert Partition.parse(text).full_name == text
    assert Partition.parse("a/b/c-partition-12").index == 12
    assert Partition.parse("a/b/c").index == -1


def test_positions_are_ordered_by_ledger_then_entry() -> None:
    assert Position(1, 99) < Position(2, 0) < Position(2, 1)
    assert Position.parse("7:-1") == Position(7, -1)


def test_replicas_follow_striping_and_ensemble_changes() -> None:
    ledger = LedgerMetadata(
        1, "CLOSED", 3, 2, 2, 99, "CRC32C", ((0, ("a", "b", "c")), (50, ("a", "d", "c")))
    )
    assert ledger.replicas(0) == ("a", "b")
    assert ledger.replicas(2) == ("c", "a")
    assert ledger.replicas(49) == ("b", "c")
    assert ledger.replicas(50) == ("c", "a")
    assert ledger.replicas(51) == ("a", "d")


def test_errors_cross_processes_with_their_hint() -> None:
    error = pickle.loads(pickle.dumps(CorruptError("bad bytes", hint="look elsewhere")))
    assert type(error) is CorruptError
    assert isinstance(error, PulsarLakeError)
    assert str(error) == "bad bytes (look elsewhere)"
    assert error.hint == "look elsewhere"
