"""What a round makes of a Pulsar that answers, refuses or is away; and that it lives meanwhile."""

import io
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from offloader.config import load_config
from offloader.model import Clocks
from offloader.service.console import Console
from offloader.service.daemon import Daemon
from offloader.service.signals import Stop
from offloader.web.health import not_ready
from reader.clients import Clients
from reader.pulsar.admin import AdminClient
from testbed.serving import Asked, HttpAnswer, answering
from tests.unit.web.world import NOWHERE

BROKERS, STATS = "/admin/v2/brokers", "/admin/v2/broker-stats/topics"

Answers = Mapping[str, tuple[int, object]]


@contextmanager
def pulsar(answers: Answers, heard: Callable[[str], None] = lambda path: None) -> Iterator[str]:
    """The address of a server that answers each path like that, others with 404."""

    def answer(asked: Asked) -> HttpAnswer:
        heard(asked.target)
        return *answers.get(asked.target, (404, {"reason": "not here"})), {}

    with answering(answer) as url:
        yield url


@contextmanager
def daemon(
    url: str,
    *names: str,
    elapsed: Callable[[], float] = time.monotonic,
    log: io.StringIO | None = None,
) -> Iterator[Daemon]:
    def no_spark() -> Any:
        raise AssertionError("nothing is converted")

    config = load_config({"pulsar": {"admin_url": url}, "storage": {"uri": "/nowhere"}})
    with AdminClient(config.pulsar) as admin, Console(log or io.StringIO()) as console:
        yield Daemon(
            config,
            Clients(config, admin=admin),
            names,
            console=console,
            stop=Stop(),
            context=no_spark,
            clocks=Clocks(elapsed=elapsed),
        )


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path))


def unanswered(url: str, *names: str) -> str:
    """Why the process is not ready after its first round, "" if it is."""
    with daemon(url, *names or ("shop/live/orders",)) as made:
        made.scheduler.round()
        return not_ready(made.elapsed(), made.monitor.round, 60.0, None, stopping=False) or ""


def test_a_pulsar_that_is_away_is_seen_with_plain_names_too() -> None:
    assert "no answer" in unanswered(NOWHERE)
    assert "no answer" in unanswered(NOWHERE, "shop/live/*")


@pytest.mark.parametrize(
    ("brokers", "stats", "said"),
    [
        ((200, ["one:1"]), (200, {}), ""),
        ((403, {"reason": "not a superuser"}), (403, {}), ""),
        ((401, {"reason": "who are you?"}), (401, {}), ""),
        ((503, {"reason": "still starting"}), (200, {}), "HTTP 503"),
        ((200, ["127.0.0.1:1", "127.0.0.1:2"]), (200, {}), ""),  # other brokers that are away
    ],
)
def test_a_refusal_is_an_answer(
    brokers: tuple[int, object], stats: tuple[int, object], said: str
) -> None:
    with pulsar({BROKERS: brokers, STATS: stats}) as url:
        found = unanswered(url)
    assert said in found
    assert bool(said) == bool(found)


def test_it_beats_between_the_lists_of_a_round() -> None:
    spaces = [f"shop/n{number}" for number in range(4)]
    answers: dict[str, tuple[int, object]] = {
        "/admin/v2/tenants": (200, ["shop"]),
        "/admin/v2/namespaces/shop": (200, spaces),
        BROKERS: (200, []),
        STATS: (200, {}),
    }
    for one in spaces:
        answers[f"/admin/v2/persistent/{one}/partitioned"] = answers[
            f"/admin/v2/persistent/{one}"
        ] = (200, [])
    beats: dict[str, float] = {}
    running: list[Daemon] = []
    with pulsar(answers, lambda path: beats.update({path: running[0].scheduler.turned_at})) as url:
        with daemon(url, "*/n*/orders") as made:
            running.append(made)
            made.scheduler.round()
    assert beats.keys() == answers.keys()
    ends = [f"/admin/v2/persistent/{one}" for one in spaces]
    times = [beats[path] for path in ("/admin/v2/tenants", "/admin/v2/namespaces/shop", *ends)]
    assert times == sorted(set(times)), "each list has a beat of its own"


def test_a_pattern_that_matches_nothing_is_named_once() -> None:
    topic = "persistent://shop/live/orders"
    names: list[str] = []
    answers = {
        "/admin/v2/persistent/shop/live/partitioned": (200, []),
        "/admin/v2/persistent/shop/live": (200, names),
        BROKERS: (403, {}),
    }
    log = io.StringIO()
    with pulsar(answers) as url, daemon(url, "shop/live/*", log=log) as made:
        for listed in ([], [], [topic], []):
            names[:] = listed
            made.scheduler.round()
    assert log.getvalue().count("pattern shop/live/* matches no topic") == 2
