"""What is said of a place of ``[[tiered]]``, on directories; S3 and a real Pulsar: integration."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from offloader.check.checklist import Checklist
from offloader.check.outcome import Finding
from offloader.check.tiered_check import OffloadedLedgers, check_place, offloaded_ledgers
from offloader.check.topic_check import FoundTopics
from offloader.config import load_config
from reader.config import TieredConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import OffloadContext
from reader.pulsar import AdminClient
from tests.unit.tiered.placed import JCLOUD, PARTITION, UUID, entries, place, put

FOUND = FoundTopics({PARTITION.topic: (PARTITION,)})


def admin(*ledgers: tuple[int, OffloadContext | None], last: int = 8) -> AdminClient:
    listed = [SimpleNamespace(ledger_id=one, offload=context) for one, context in ledgers]
    listing = SimpleNamespace(ledgers=listed, last_entry=lambda one: last)
    return cast(
        AdminClient,
        SimpleNamespace(ledgers=lambda *_, **__: listing, http=SimpleNamespace(url="http://admin")),
    )


def ledgers(*ids: int) -> OffloadedLedgers:
    return offloaded_ledgers(admin(*((one, UUID) for one in ids)), FOUND, lambda _: None)


def checked(one: TieredConfig, asked: OffloadedLedgers, *others: TieredConfig) -> Finding:
    return check_place(one, [one, *others], asked, lambda _: None)


def test_some_of_the_ledgers_that_pulsar_has_offloaded_are_asked_for() -> None:
    every = admin((1, None), *((one, UUID) for one in range(2, 12)))
    found = offloaded_ledgers(every, FOUND, lambda _: None)
    assert [one.ledger_id for one in found] == [2, 3, 10, 11]
    assert offloaded_ledgers(admin((2, UUID), last=-1), FOUND, lambda _: None) == []

    def refused(*_: Any, **__: Any) -> Any:
        raise ConfigurationError("no permission")

    none = cast(AdminClient, SimpleNamespace(ledgers=refused, http=SimpleNamespace(url="")))
    assert offloaded_ledgers(none, FOUND, lambda _: None) == []


@pytest.mark.parametrize("form", [JCLOUD, "BLOCK"])
def test_a_place_that_has_one_of_them(tmp_path: Path, form: str) -> None:
    put(tmp_path, entries(9, 20), form)
    found = checked(place(tmp_path, form), ledgers(6, 7))
    assert (found.state, found.text) == (
        "ok",
        f"{tmp_path}: gives an entry of ledger 7 of {PARTITION}",
    )


def test_a_place_of_which_nothing_is_known(tmp_path: Path) -> None:
    for asked, namespaces in ((ledgers(), ["*/*"]), (ledgers(7), ["x/*"])):
        found = checked(place(tmp_path, JCLOUD, namespaces=namespaces), asked)
        assert (found.state, "no ledger of the topics asked for" in found.text) == ("ok", True)


@pytest.mark.parametrize(("written", "said"), [(JCLOUD, "filesystem"), ("NONE", "jcloud")])
def test_a_wrong_format(tmp_path: Path, written: str, said: str) -> None:
    put(tmp_path, entries(9, 20), written)
    found = checked(place(tmp_path, "NONE" if written == JCLOUD else JCLOUD), ledgers(7))
    right = "jcloud" if written == JCLOUD else "filesystem"
    assert found.state == "failed"
    assert f"as the {right} driver writes it" in found.text
    assert found.fix == f'set format = "{right}" in its section'


def test_a_ledger_that_is_nowhere_and_one_that_is_elsewhere(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    put(there, entries(9, 20), JCLOUD)
    one, other = place(here, JCLOUD), place(there, JCLOUD)
    found = checked(one, ledgers(7), other)
    assert (found.state, "lies in other places" in found.text) == ("ok", True)
    for others in ((), (place(tmp_path / "third", JCLOUD),)):
        found = checked(one, ledgers(7), *others)
        assert found.state == "warning"
        assert f"ledger 7 of {PARTITION}, which Pulsar has offloaded, is not there" in found.text
        assert "add a section" in found.fix


def test_a_damaged_object_is_told(tmp_path: Path) -> None:
    _, index = put(tmp_path, entries(9, 20), JCLOUD)
    index.write_bytes(b"garbage")
    found = checked(place(tmp_path, JCLOUD), ledgers(7))
    assert (found.state, "ledger 7" in found.text) == ("warning", True)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    found = checked(place(tmp_path / "none", "NONE"), ())
    assert (found.state, "there is no such bucket or directory" in found.text) == ("failed", True)


def test_a_store_that_does_not_answer(closed_port: int) -> None:
    one = TieredConfig(
        uri="s3://bucket",
        options={
            "endpoint_url": f"http://127.0.0.1:{closed_port}",
            "access_key_id": "k",
            "secret_access_key": "s",
            "region": "r",
            "allow_http": "true",
        },
    )
    with pytest.raises(UnavailableError, match=r"^cannot read s3://bucket at http") as error:
        checked(one, ())
    assert "options" in str(error.value.hint)


@pytest.mark.parametrize(
    ("uris", "names"), [([], []), (["/a"], ["tiered"]), (["/a", "/b"], ["tiered 1", "tiered 2"])]
)
def test_a_line_for_each(uris: list[str], names: list[str]) -> None:
    config = load_config({"tiered": [{"uri": one} for one in uris]})
    with Checklist(config, 3.0) as checklist:
        found = [one.name for one in checklist.checks()]
    assert [one for one in found if one.startswith("tiered")] == names
    after = found[found.index("storage") + 1 :]
    assert after[: len(names)] == names
