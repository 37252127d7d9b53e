"""The API without a server: who may ask what, what comes back, and what is never said."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from offloader.model.observation import Observation, TopicState
from offloader.model.turn import Turn
from offloader.schedule.request import Request
from offloader.service import TopicStatus
from offloader.service.monitor import Monitor, Round, TopicActivity
from offloader.web.health import LOOP_SECONDS, not_alive, not_ready
from offloader.web.overview import Overview, topic_row, totals
from offloader.web.topic_detail import TopicDetail
from reader.errors import UnavailableError
from reader.model import Topic
from tests.support.backlogs import backlog_of
from tests.unit.web.world import BILLS, DONE, ORDERS, TOKEN, World, turn_of

OFFLOAD = "/api/topics/shop/live/orders/offload"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def world() -> Iterator[World]:
    """A world that is running."""
    made = World()
    with made.running():
        yield made


def settled(world: World, path: str) -> dict[str, Any]:
    world.ahead += 1.1  # an overview is kept for a second
    value: dict[str, Any] = world.get(path).json()
    return value


def test_all_topics(world: World) -> None:
    found = settled(world, "/api/topics")
    assert [one["topic"] for one in found["topics"]] == ["shop/live/orders", "shop/live/a/b c"]
    [row, _] = found["topics"]
    assert row["lag"] == {"ledgers": 2, "bytes": 300, "seconds": 0.0}
    assert (row["open_bytes"], row["state"], row["last_commit"]) == (40, "fine", None)
    assert row["published_bytes_per_second"] is None, "brokers did not say"
    assert found["totals"]["lag"]["ledgers"] == 4
    assert found["state"] == "serving"


def test_a_request_with_progress_and_a_result() -> None:
    world = World()
    go = threading.Event()

    def work(topic: Topic) -> Turn:
        assert go.wait(60)
        return turn_of(topic, committed=True)

    world.work = work
    with world.running():
        [made] = world.ask(("POST", OFFLOAD), **BEARER)
        assert made.status_code == 202
        assert made.headers["location"] == made.json()["url"]
        url = made.json()["url"]
        before = world.get(f"{url}?wait=0.2").json()
        assert (before["state"], before["commits"], before["error"]) == ("waiting", [], None)

        async def wait_and_go() -> httpx.Response:
            async with world.client() as client:
                waiting = asyncio.create_task(client.get(f"{url}?wait=60"))
                await client.get(url)
                assert not waiting.done()
                go.set()
                # It waits for the end, and no longer: not for all of the 60 s.
                return await asyncio.wait_for(waiting, 55)

        after = world.run(wait_and_go()).json()
        assert after["state"] == "done"
        [commit] = after["commits"]
        assert (commit["rows"], commit["rescued"], commit["version"]) == (50, 4, 3)
        [first, *_] = world.get("/api/commits").json()["commits"]
        assert first["topic"] == "shop/live/orders"
        row = settled(world, "/api/topics")["topics"][0]
        assert row["last_commit"]["rows"] == DONE.rows
        assert row["rows_per_second"] == pytest.approx(50 / 60, rel=0.01), "of the first minute"
        assert row["bytes_per_second"] == pytest.approx(900 / 60, rel=0.01)


def test_who_stops_waiting_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    go = threading.Event()
    listening: set[int] = set()
    registered = 0
    when_done = Request.when_done

    def counted(request: Request, tell: Callable[[], None]) -> Callable[[], None]:
        nonlocal registered
        registered += 1
        number = registered
        listening.add(number)
        forget = when_done(request, tell)

        def forget_it() -> None:
            listening.discard(number)
            forget()

        return forget_it

    def work(topic: Topic) -> Turn:
        assert go.wait(60)
        return turn_of(topic, committed=True)

    monkeypatch.setattr(Request, "when_done", counted)
    world.work = work
    with world.running():
        [made] = world.ask(("POST", OFFLOAD), **BEARER)
        answers = world.ask(*[f"{made.json()['url']}?wait=0.01"] * 50)
        assert {one.json()["state"] for one in answers} == {"waiting"}
        go.set()
    assert (registered, listening) == (50, set())


def test_a_request_tells_who_listens_and_nobody_else() -> None:
    request, told = Request(ORDERS, now=True), list[str]()
    forgets = [request.when_done(partial(told.append, "gone")) for _ in range(50)]
    forget = request.when_done(partial(told.append, "first"))
    for one in forgets:
        one()
    request.finish()
    assert told == ["first"]
    request.when_done(partial(told.append, "late"))
    forget()
    assert told == ["first", "late"]


def test_a_request_that_fails() -> None:
    world = World()

    def work(topic: Topic) -> Turn:
        raise UnavailableError("<b>no</b> bookie", hint="start one")

    world.work = work
    with world.running():
        [made] = world.ask(("POST", OFFLOAD), **BEARER)
        found = world.get(made.json()["url"] + "?wait=60").json()
        assert (found["state"], found["error"]) == ("failed", "<b>no</b> bookie (start one)")
        row = settled(world, "/api/topics")["topics"][0]
        assert row["failures"] >= 1
        assert row["last_error"]["kind"] == "UnavailableError"
        assert world.get("/api/errors").json()["errors"][0]["what"] == "shop/live/orders"
        text = world.get("/metrics").text
        assert 'pulsar_lake_errors_total{kind="UnavailableError"}' in text
        assert 'pulsar_lake_topic_failures{topic="shop/live/orders"}' in text


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("", 401),
        ("Basic dTpw", 401),
        ("Bearer ", 401),
        ("Bearer wrong", 403),
        ("Bearer the-token-of-the-pagE", 403),
        ("bearer the-token-of-the-page", 202),
    ],
)
def test_who_may_change_something(world: World, header: str | None, status: int) -> None:
    headers = {} if header is None else {"authorization": header}
    [answer] = world.ask(("POST", OFFLOAD), **headers)
    assert answer.status_code == status
    outcome = "accepted" if status == 202 else "refused"
    counted = f'pulsar_lake_offload_requests_total{{outcome="{outcome}"}} 1.0'
    assert counted in world.get("/metrics").text


def test_without_a_token_nobody_changes_anything() -> None:
    world = World(token="")
    with world.running():
        for header in ("Bearer ", "Bearer x", "Bearer None"):
            [answer] = world.ask(("POST", OFFLOAD), authorization=header)
            assert answer.status_code == 403
            assert "set http.token" in answer.json()["hint"]


def test_a_token_file_is_read_afresh(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("the first of two tokens\n")
    world = World(token="", token_file=str(file))
    with world.running():
        [answer] = world.ask(("POST", OFFLOAD), authorization="Bearer the first of two tokens")
        assert answer.status_code == 202
        file.write_text("the second of two tokens\n")
        [answer] = world.ask(("POST", OFFLOAD), authorization="Bearer the first of two tokens")
        assert answer.status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/topics/shop/live", 400),
        ("GET", "/api/topics/shop//orders", 400),
        ("GET", "/api/topics/shop/live/a/b/c/d", 400),
        ("GET", "/api/topics/shop/live/nobody", 404),
        ("GET", "/api/topics/shop/live/orders/nothing", 404),
        ("GET", OFFLOAD, 405),
        ("POST", "/api/topics/shop/live/orders", 405),
        ("POST", "/api/topics", 405),
        ("DELETE", "/api/topics/shop/live/orders", 405),
        ("POST", "/api/topics/shop/live/nobody/offload", 404),
        ("GET", "/api/requests/unknown", 404),
        ("GET", "/nothing", 404),
        ("GET", "/static/../security.py", 404),
        ("GET", "/static/%2e%2e/security.py", 404),
    ],
)
def test_what_is_refused_says_so_in_json(world: World, method: str, path: str, status: int) -> None:
    [answer] = world.ask((method, path), **BEARER)
    assert answer.status_code == status
    assert answer.json()["error"]


def test_names_with_slashes_and_spaces(world: World) -> None:
    path = "/api/topics/shop/live/a%2Fb%20c"
    assert path.endswith(BILLS.rest_path)
    [answer] = world.ask(("POST", f"{path}/offload"), **BEARER)
    assert answer.json()["topic"] == "shop/live/a/b c"
    assert world.get("/api/topics/shop/live/a/b%20c").status_code == 404, "b c of a topic a"


def test_wait_is_a_number(world: World) -> None:
    [made] = world.ask(("POST", OFFLOAD), **BEARER)
    for text in ("x", "-1", "nan", "inf"):
        assert world.get(f"{made.json()['url']}?wait={text}").status_code == 400


def test_a_detail_that_cannot_be_had_leaves_what_is_known(world: World) -> None:
    found = world.get("/api/topics/shop/live/orders").json()
    assert found["lag"]["ledgers"] == 2
    assert [one["lag_ledgers"] for one in found["partitions"]] == [2]
    assert found["observed_at"] <= found["at"]
    assert found["errors"]
    answer = world.get("/api/topics/shop/live/orders/segments")
    assert answer.status_code == 503
    assert "127.0.0.1:1" in answer.text


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:8787", True),
        ("localhost:8787", True),
        ("[::1]:8787", True),
        ("10.0.0.7:8787", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        ("lake.example:443", False),
        ("[::1]", True),
        ("[::1", False),
        ("[::1]evil.example", False),
        ("[::1]:", False),
        ("[::1]:80evil", False),
        ("::1", False),
        ("[127.0.0.1]", False),
        ("127.0.0.1:evil.example", False),
        ("localhost:80:80", False),
        ("evil.example:localhost", False),
    ],
)
def test_names_that_point_to_loopback_are_refused(host: str, known: bool) -> None:
    for path in ("/", "/api/topics", "/metrics", "/static/style.css"):
        assert World().get(path, host=host).status_code == (200 if known else 421), path


def test_names_that_are_set() -> None:
    behind = World(hosts=["Lake.example"])
    assert behind.get("/", host="lake.example:443").status_code == 200
    assert behind.get("/", host="evil.example").status_code == 421
    assert World(address="0.0.0.0:0").get("/", host="any.example").status_code == 421
    assert World(address="0.0.0.0:0").get("/", host="10.0.0.7:8787").status_code == 200
    named = World(address="0.0.0.0:0", hosts=["lake.example"])
    assert named.get("/", host="evil.example").status_code == 421


def test_every_answer_is_guarded() -> None:
    world = World()
    paths = ("/", "/topic", "/static/topic.js", "/api/topics", "/nothing", "/healthz", "/metrics")
    for answer in world.ask(*paths, origin="http://evil.example"):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_no_answer_has_a_secret(world: World) -> None:
    [made] = world.ask(("POST", OFFLOAD), **BEARER)
    paths = ["/", "/topic", "/api/topics", "/api/commits", "/api/errors", "/metrics"]
    paths += ["/api/topics/shop/live/orders", "/api/topics/shop/live/orders/segments"]
    paths += ["/healthz", "/readyz", made.json()["url"], "/nothing"]
    for answer in world.ask(*paths):
        for secret in (TOKEN, "the-pulsar-token", "the-key"):
            assert secret not in answer.text
            assert secret not in str(answer.headers)
    assert TOKEN not in made.text
    assert TOKEN not in repr(world.config)


def test_an_internal_error_is_logged_and_affects_nothing_else(world: World) -> None:
    assert world.get("/api/topics/%00/%0A/x").status_code == 404

    def broken() -> None:
        raise ZeroDivisionError("not <i>foreseen</i>")

    world.storage = broken
    answer = world.get("/readyz")
    assert answer.status_code == 500
    assert answer.json() == {"error": "internal error; see the offloader's log"}
    assert "ZeroDivisionError" not in answer.text
    [line] = world.said
    assert "ZeroDivisionError" in line
    assert world.get("/healthz").status_code == 200


def test_ready_and_healthy() -> None:
    world = World()
    early: httpx.Response = world.get("/readyz")
    assert (early.status_code, early.json()["error"]) == (503, "the first round has not finished")
    with world.running():
        assert [one.status_code for one in world.ask("/healthz", "/readyz")] == [200, 200]
        world.stopping = True
        assert world.get("/readyz").status_code == 503
        assert settled(world, "/api/topics")["state"] == "stopping"


def test_slow_topics_are_not_the_storages_fault() -> None:
    go, begun = threading.Event(), threading.Semaphore(0)

    class SlowDetail(TopicDetail):
        def segments(self, topic: Topic) -> dict[str, Any]:
            begun.release()
            assert go.wait(60)
            return {}

        def commits(self, topic: Topic) -> list[dict[str, Any]]:
            return [self.segments(topic)]

    world = World(detail=SlowDetail)
    names = ("orders", "a%2Fb%20c")
    paths = [
        f"/api/topics/shop/live/{name}/{what}" for name in names for what in ("segments", "commits")
    ]

    async def all_of_them() -> httpx.Response:
        async with world.client() as client:
            asked = [asyncio.create_task(client.get(path)) for path in paths]
            for _ in paths:
                assert await asyncio.to_thread(begun.acquire, timeout=60)
            ready = await client.get("/readyz")
            go.set()
            await asyncio.gather(*asked)
            return ready

    with world.running():
        assert world.run(all_of_them()).status_code == 200


def test_when_it_is_not_ready() -> None:
    def ready(last: Round | None, storage: str | None = None, now: float = 1000.0) -> str | None:
        return not_ready(now, last, 60.0, storage, stopping=False)

    assert ready(Round(990.0, "")) is None
    assert ready(Round(990.0, "no answer")) == "Pulsar: no answer"
    assert "last answered 310 s ago" in str(ready(Round(690.0, "")))
    assert ready(Round(990.0, ""), "denied") == "storage: denied"
    assert not_alive(1.0, stopping=False) is None
    assert "301 s ago" in str(not_alive(LOOP_SECONDS + 1, stopping=False))


def test_it_lives_while_the_running_commits_finish() -> None:
    world = World()
    world.ahead = LOOP_SECONDS + 1
    assert world.get("/healthz").status_code == 503
    world.stopping = True
    assert world.get("/healthz").status_code == 200


def test_states_and_sums() -> None:
    def state(seen: Observation | None, **more: Any) -> TopicState:
        known = {"share": None, "running": False, "failures": 0, "next_at": 2000.0, "written": 5}
        looked = seen.backlog if seen else None
        return TopicState(ORDERS, observation=seen, backlog=looked, **{**known, **more})

    name = ORDERS.full_name
    backlog = backlog_of({name: 10}, {name: 3}, 940.0, ledgers=1, at=900.0)
    seen = Observation(900.0, backlog, notes=("a TTL",))
    younger = backlog_of({name: 10}, {name: 3}, 970.0, ledgers=1, at=910.0)
    later = Observation(910.0, younger, notes=("a TTL",))
    rows = [
        topic_row(state(None), TopicActivity(), 1000.0),
        topic_row(state(seen, failures=2), TopicActivity(), 1000.0),
        topic_row(state(seen, running=True, failures=2, next_at=None), TopicActivity(), 1000.0),
        topic_row(state(later, next_at=1000.0), TopicActivity(), 1000.0),
        topic_row(state(seen, next_at=float("inf")), TopicActivity(), 1000.0),
    ]
    assert [row["state"] for row in rows] == ["new", "failing", "running", "due", "fine"]
    assert rows[0]["lag"] == {"ledgers": None, "bytes": None, "seconds": None}
    assert rows[1]["lag"] == {"ledgers": 1, "bytes": 10, "seconds": 60.0}
    assert rows[1]["open_bytes"] == 8
    assert rows[4]["next_at"] is None
    found = totals(rows)
    assert (found["topics"], found["failing"], found["warned"]) == (5, 2, 4)
    assert found["lag"] == {"ledgers": 4, "bytes": 40, "seconds": 60.0}
    assert (rows[0]["observed_at"], found["observed_at"]) == (None, 900.0)
    assert totals([])["lag"]["seconds"] == 0.0


def test_whoever_looked_all_are_shown_the_same() -> None:
    """Lists of a turn, of a page, or a commit of another process: one value, and its age."""

    class Detail(TopicDetail):
        def look(self, topic: Topic) -> TopicStatus:
            at = time.time()
            found = backlog_of({topic.full_name: 500}, {}, at - 70, ledgers=3, at=at)
            self._looked(topic, found)
            return TopicStatus(topic.local_name, at, found, None, ())

    world = World(detail=Detail)
    with world.running():
        began = time.time()
        page = world.get("/api/topics/shop/live/orders").json()
        world.ahead += 1.1  # an overview is kept for a second
        rows = {one["topic"]: one for one in world.get("/api/topics").json()["topics"]}
        for found in (page, rows[str(ORDERS)]):
            assert found["observed_at"] >= began
            assert (found["lag"]["ledgers"], found["lag"]["bytes"]) == (3, 500)
            assert found["lag"]["seconds"] == pytest.approx(70, abs=60)
        [part] = page["partitions"]
        assert (part["lag_ledgers"], part["lag_bytes"]) == (3, 500)
        assert part["lag_seconds"] == page["lag"]["seconds"]
        metrics = world.get("/metrics").text
        assert 'pulsar_lake_topic_lag_bytes{topic="shop/live/orders"} 500.0' in metrics
        assert "pulsar_lake_lag_ledgers 5.0" in metrics, "the other one's are as they were"
        [age] = re.findall(r"^pulsar_lake_lag_age_seconds (\S+)$", metrics, re.MULTILINE)
        assert 0 < float(age) < 60
        assert rows[str(BILLS)]["observed_at"] < began


def test_an_overview_is_made_once_a_second() -> None:
    now, takes = 1000.0, 0.0

    class SlowMonitor(Monitor):
        def activities(self) -> dict[Topic, TopicActivity]:
            nonlocal now
            now += takes
            return {}

    made = Overview(World().scheduler, SlowMonitor(), lambda: False, lambda: now)
    before = made.topics()
    now += 0.95
    assert made.topics() is before
    now += 0.1
    again = made.topics()
    assert again is not before
    takes = 0.3
    now += 1.05
    slow = made.topics()
    assert slow is not again
    now += 1.05
    assert made.topics() is slow, "what takes long is made less often"
    now += 2.0
    assert made.topics() is not slow


def test_without_labels_of_topics() -> None:
    world = World(topic_labels=False)
    with world.running():
        assert "pulsar_lake_lag_ledgers 4.0" in world.get("/metrics").text
        assert "shop/live" not in world.get("/metrics").text
