"""Which bookies are asked for what, and what their answers mean."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from offloader.check.bookie_check import Target, check_bookies, targets
from offloader.check.outcome import Finding
from offloader.check.topic_check import FoundTopics
from reader.bookkeeper import BookieAccess
from reader.bookkeeper.v3 import ENOLEDGER, EOK
from reader.errors import ConfigurationError
from reader.model import LedgerMetadata, Partition, Topic
from reader.pulsar import AdminClient
from tests.unit.bookkeeper.fake_bookie import FakeBookie, answer

TOPIC = Topic("a", "b", "c")
FOUND = FoundTopics({TOPIC: (Partition(TOPIC, 0),)})


def ledger(number: int, last: int, *ensembles: tuple[int, tuple[str, ...]], quorum: int = 2) -> Any:
    size = len(ensembles[0][1])
    metadata = LedgerMetadata(
        number, "CLOSED", size, quorum, quorum, last, "CRC32C", tuple(ensembles)
    )
    return SimpleNamespace(metadata=metadata, offloaded=False)


def admin(bookies: list[str] | None, *ledgers: Any) -> AdminClient:
    """None: a role that may not list them."""

    def listed() -> list[str]:
        if bookies is None:
            raise ConfigurationError("no permission for the bookies")
        return bookies

    return cast(
        AdminClient,
        SimpleNamespace(
            bookies=listed,
            ledgers=lambda *_, **__: SimpleNamespace(ledgers=ledgers),
            http=SimpleNamespace(url="http://admin"),
        ),
    )


def test_each_bookie_is_asked_for_an_entry_that_it_has() -> None:
    striped = ledger(7, 9, (0, ("x", "y", "z")), (5, ("x", "y", "w")))
    found = targets(
        admin(["idle", "x"], striped, ledger(8, -1, (0, ("v", "x")))), FOUND, lambda _: None
    )
    assert {one.bookie for one in found} == {"idle", "v", "w", "x", "y", "z"}
    by_name = {one.bookie: one for one in found}
    assert by_name["idle"] == Target("idle")
    assert by_name["v"] == Target("v", 8, 0), "an open ledger: whether it has the entry, who knows"
    for name in "wxyz":
        one = by_name[name]
        assert one.known
        assert name in striped.metadata.replicas(one.entry)


def test_a_role_that_may_not_list_them_is_told_by_ledgers() -> None:
    found = targets(admin(None, ledger(7, 0, (0, ("x", "y")))), FOUND, lambda _: None)
    assert found == [Target("x", 7, 0, known=True), Target("y", 7, 0, known=True)]
    assert targets(admin(None), FoundTopics({}), lambda _: None) == []


@pytest.fixture
def bookie() -> Iterator[FakeBookie]:
    """It has entry 7:0."""

    def script(request: int, ledger: int, entry: int) -> bytes:
        has = (ledger, entry) == (7, 0)
        return answer(request, EOK if has else ENOLEDGER, ledger, entry, b"entry" if has else None)

    with FakeBookie(script) as running:
        yield running


def asked(
    *those: Target, addresses: dict[str, str] | None = None, through_broker: bool = False
) -> Finding:
    return check_bookies(
        list(those),
        addresses or {},
        BookieAccess(),
        lambda _: None,
        timeout=120,
        through_broker=through_broker,
    )


def test_all_answer(bookie: FakeBookie) -> None:
    has, empty = Target(bookie.address, 7, 0, known=True), Target("b", 99, 0)
    found = asked(has, empty, addresses={"b": bookie.address})
    assert found.state == "ok", found
    assert found.text.startswith(f"2 of 2 answer: {bookie.address}, b at {bookie.address}; 1 gave")


def test_one_that_is_another_bookie_than_its_id_says(bookie: FakeBookie) -> None:
    found = asked(Target("b", 8, 3, known=True), addresses={"b": bookie.address})
    assert found.state == "failed"
    assert f"b at {bookie.address}: it does not have entry 8:3" in found.text
    assert "[pulsar.bookies]" in found.fix


@pytest.mark.parametrize(
    ("name", "text", "fix"),
    [
        ("bookie-1", "bookie-1: bookie id 'bookie-1' is not an address", '"id" = "host:port"'),
        ("nobody.invalid:3181", "no connection to bookie nobody.invalid:3181", "[pulsar.bookies]"),
        pytest.param("127.0.0.1:{}", "Connection refused", "start it", id="nobody listens"),
    ],
)
def test_what_does_not_answer_is_named_beside_what_does(
    bookie: FakeBookie, closed_port: int, name: str, text: str, fix: str
) -> None:
    name = name.format(closed_port)
    found = asked(Target(bookie.address), Target(name))
    assert found.state == "failed"
    assert found.text.startswith("1 of 2 do not answer: ")
    assert text in found.text
    assert bookie.address not in found.text
    assert fix in found.fix
    assert asked(Target(name), through_broker=True).state == "warning"


def test_none_is_known() -> None:
    assert asked().state == "skipped"
