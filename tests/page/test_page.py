"""The status page of a daemon as users run it, in Chromium. One daemon, from start to stop.

What a test needs of the topics before it, a fixture makes unless an earlier test has: each runs
alone as well. The last one stops the daemon.
"""

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium.webdriver.common.keys import Keys

from reader.model import Topic
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from testbed.s3 import S3
from testbed.tiered import TieredStorage
from tests.page.browser import Browser, open_browser
from tests.support.iceberg import iceberg_config
from tests.support.running import Run, Settings

TOKEN = "the-token-of-the-page"
BAD = "public/default/<script>document.title='broken'</script>"
"""A name that Pulsar refuses: its error text has the name in it."""

pytestmark = [pytest.mark.journey, pytest.mark.timeout(600)]


@dataclass(slots=True)
class Served:
    """A daemon that serves ``orders`` (two partitions, three sealed ledgers each) and ``quiet``.

    ``sent``: so many messages are in ``orders``.
    """

    run: Run
    url: str
    orders: Topic
    quiet: Topic
    sent: int

    def api(self, path: str, method: str = "GET", **headers: str) -> httpx.Response:
        return httpx.request(method, f"{self.url}api/{path}", headers=headers, timeout=90)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=90)

    def send(self, cluster: Cluster, admin: Admin) -> None:
        """One more sealed ledger in each partition of ``orders``."""
        self.sent += send(cluster, admin, self.orders)

    def page(self, topic: Topic) -> str:
        return f"topic?name={topic.local_name}"


def send(cluster: Cluster, admin: Admin, topic: Topic, count: int = 40) -> int:
    """``count`` messages in a ledger that is sealed then."""
    messages = [f"{uuid.uuid4()}".encode() for _ in range(count)]
    publish(cluster.service_url, topic.full_name, messages, batch=10)
    admin.seal(topic.full_name)
    return count


@pytest.fixture(scope="module")
def served(
    cluster: Cluster,
    admin: Admin,
    s3: S3,
    tiered: TieredStorage,
    lake_namespace: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    orders, quiet = (Topic.parse(f"{lake_namespace}/{name}") for name in ("orders", "quiet"))
    admin.create_topic(orders.full_name, 2)
    admin.create_topic(quiet.full_name)
    for partition in (*admin.partitions(orders.full_name), quiet.full_name):
        admin.create_subscription(partition, "pulsar-lake")
    sent = sum(send(cluster, admin, orders) for _ in range(3))
    own = tmp_path_factory.mktemp("page")
    uri = f"{s3.uri}/{uuid.uuid4()}"
    settings = Settings(
        *(own, cluster, uri, s3.storage_options),
        http={"token": TOKEN},
        iceberg={"catalog": "sql", "options": iceberg_config("sql", own).options},
        tiered=tiered.places,
        interval="500ms",
    )
    run = Run(settings, "offload", f"{lake_namespace}/*", BAD)
    try:
        run.wait_for("status page at ")
        [url] = re.findall(r"status page at (\S+)", run.err)
        yield Served(run, url, orders, quiet, sent)
    finally:
        run.end()


@pytest.fixture(scope="module")
def table(served: Served) -> None:
    """``orders`` has a table, of its first six ledgers."""
    path = f"topics/{served.orders.rest_path}/commits"
    # A daemon that has just been started does not know the topic yet.
    wait_until("the topic", lambda: served.api(path).status_code == 200)
    if not served.api(path).json()["commits"]:
        offloaded(served, served.orders)


@pytest.fixture(scope="module")
def sealed(table: None, served: Served, cluster: Cluster, admin: Admin) -> None:
    """``orders`` has two sealed ledgers that are not in its table."""
    served.send(cluster, admin)


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Browser]:
    with open_browser(served.url) as opened:
        yield opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """The browser at its usual size; nothing on the page may have been complained about."""
    browser.size(1280, 900)
    yield browser
    assert browser.complaints() == []


def row(page: Browser, topic: str) -> dict[str, str]:
    """A topic's cells by their titles."""
    found: dict[str, str] = page.script(
        "const row = [...document.querySelectorAll('#rows tr')]"
        ".find((one) => one.dataset.topic === arguments[0]);"
        "return Object.fromEntries([...(row?.cells ?? [])]"
        ".map((one) => [one.dataset.label, one.innerText]))",
        topic,
    )
    return found


def test_all_topics_with_problems_first(served: Served, page: Browser) -> None:
    page.go("")
    page.see("#rows", str(served.orders), str(served.quiet), "failing")

    def settled(topic: Topic, title: str, text: str) -> dict[str, str]:
        """A topic's cells after its first turn."""
        cells = row(page, str(topic))
        return cells if (cells[title], cells["State"]) == (text, "fine") else {}

    found = page.until("a lag", lambda: settled(served.orders, "Ledgers", "6"))
    page.until("no lag", lambda: settled(served.quiet, "Lag", "0 s"))
    assert re.fullmatch(r"(\d+ min )?\d+ s", found["Lag"])
    assert re.fullmatch(r"[\d.]+ KiB", found["Waiting"])
    [first, *_] = page.all("#rows tr")
    assert first.get_attribute("data-topic") == BAD
    assert "in a row, next try" in first.text
    page.see("#totals", "1 failing", "6 sealed ledgers")
    assert page.text("#live") == "live"


def test_what_others_wrote_is_only_text(served: Served, page: Browser) -> None:
    page.go("")
    page.see("#rows .problem", "the Pulsar admin refused", BAD)
    page.see("#errors", BAD)
    page.go(f"topic?name={httpx.QueryParams({'name': BAD})['name']}")
    page.see("#name", BAD)
    page.see("#errors", BAD)
    assert page.script("return document.querySelectorAll('main script, main iframe').length") == 0
    assert page.driver.title.endswith("pulsar-lake"), "no script ran"


def test_filter_and_sort_by_keyboard(served: Served, page: Browser) -> None:
    page.go("")
    page.see("#rows", str(served.orders))
    page.one("#filter").send_keys("QUI")
    page.until("one row", lambda: len(page.all("#rows tr")) == 1)
    assert str(served.quiet) in page.text("#rows")
    page.press(*[Keys.BACKSPACE] * 3, "nothing like this")
    page.see("#none", "No topic matches the filter")
    page.one("#filter").clear()
    page.one("#problems").send_keys(Keys.SPACE)
    page.until("one problem", lambda: len(page.all("#rows tr")) == 1)
    page.one("#problems").send_keys(Keys.SPACE)
    page.press(Keys.TAB)
    page.press(Keys.ENTER)
    heading = page.one("th[data-column=topic]")
    page.until("sorted", lambda: heading.get_attribute("aria-sort") == "ascending")
    names = [one.get_attribute("data-topic") for one in page.all("#rows tr")]
    assert names == sorted(names, key=str)
    page.press(Keys.ENTER)
    page.until("turned round", lambda: heading.get_attribute("aria-sort") == "descending")


def test_offload_now_takes_the_token(served: Served, page: Browser) -> None:
    page.go(served.page(served.orders))
    page.see("#timeline-note", "6 bookkeeper", "no table yet")
    page.one("#offload").click()
    page.until("the dialog", lambda: page.script("return document.activeElement.id") == "token")
    page.press("wrong", Keys.ENTER)
    page.see("#ask-error", "wrong token")
    assert served.api(f"topics/{served.orders.rest_path}/commits").json() == {"commits": []}
    assert page.script("return sessionStorage.length") == 0
    page.press(TOKEN, Keys.ENTER)
    # Without another look at the address, the page shows what came of it.
    page.script("window.stayed = true")
    page.see("#request-text", "Done", f"{served.sent} rows committed as version")
    page.see("#commits", f"{served.sent} rows of 6 ledgers", "requested")
    page.see("#timeline-note", "6 parquet", "table version 1")
    page.see("#facts", "0 sealed ledgers", "Iceberg", "up to date", "shows version 1")
    page.one("#offload").click()
    page.see("#request-text", "no sealed ledger was waiting")
    assert page.script("return window.stayed")


@pytest.mark.usefixtures("table")
def test_segments_by_keyboard(
    served: Served, page: Browser, request: pytest.FixtureRequest
) -> None:
    page.go(served.page(served.orders))
    page.see("#timeline-note", "6 parquet")
    request.getfixturevalue("sealed")  # while the page is looked at
    page.see("#timeline-note", "6 parquet, 2 bookkeeper")
    page.one("#equal").send_keys(Keys.SPACE)
    page.until("blocks", lambda: len(page.all(".seg.bookkeeper.sealed")) == 2)
    assert len(page.all(".seg[tabindex='0']")) == 1, "one block is in the tab order"
    page.press(Keys.TAB)
    page.until("a block", lambda: page.focused.startswith("Ledger"))
    page.press(Keys.UP, Keys.HOME)
    seen = []
    for _ in range(4):
        page.see("#tip", page.focused.split(";")[0])
        seen.append(page.text("#tip").replace("\n\n", "\n"))
        page.press(Keys.RIGHT)
    for text in seen[:3]:
        assert "of partition 0" in text
        assert "offloaded, in the table (Parquet)\nin the table, read from bookkeeper\n" in text
        assert re.search(
            r"\d+ rows, \d+ entries, [\d.]+ (K|M)?i?B\npublished .+ to .+ \(\d+ s\)", text
        )
    assert "sealed, on the bookies (BookKeeper)\nsealed, not offloaded yet\n" in seen[3]
    assert "closed " in seen[3]
    page.press(Keys.DOWN)
    page.see("#tip", "of partition 1")
    page.press(Keys.ESCAPE)
    page.until("no tip", lambda: not page.one("#tip").is_displayed())


def blocks(page: Browser) -> list[dict[str, Any]]:
    """What is drawn of partition 0: class, x, width and whether it is there for a pointer."""
    found: list[dict[str, Any]] = page.script(
        "return [...document.querySelector('.track').children].map((one) => {"
        "const box = one.getBoundingClientRect();"
        "const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);"
        "return { kind: one.className, x: box.x, width: box.width, hit: at === one,"
        " fill: getComputedStyle(one).backgroundColor }; })"
    )
    return found


@pytest.mark.usefixtures("sealed")
def test_an_empty_ledger_is_hollow_and_hides_nothing(served: Served, page: Browser) -> None:
    page.go(served.page(served.orders))
    # An unload leaves an open ledger without entries, for as long as nothing is published.
    page.until("one that is open", lambda: page.all(".line:first-child .seg.open.empty"))
    page.script("document.getElementById('timeline').scrollIntoView()")
    drawn = page.until("all of them", lambda: len(found := blocks(page)) == 5 and found)
    assert [one["kind"].split()[1:3] for one in drawn] == [
        *[["parquet", "offloaded"]] * 3,
        ["bookkeeper", "sealed"],
        ["broker", "open"],
    ]
    assert all(one["hit"] and one["width"] >= 10 for one in drawn), drawn
    assert sum(one["width"] for one in drawn[:-1]) > 4 * drawn[-1]["width"], "no time of its own"
    assert drawn[-1]["fill"] == "rgba(0, 0, 0, 0)"
    assert all(one["fill"] != drawn[-1]["fill"] for one in drawn[:-1])
    label = page.until("its label", lambda: page.one(".seg.open.empty").get_attribute("aria-label"))
    assert "open, through the broker; " in label
    assert label.endswith("; no entries")
    page.see("#legend", "hollow: no entries")
    page.see("#timeline-note", "as of ")


def test_header_and_partitions_are_one_observation(
    served: Served, page: Browser, cluster: Cluster, admin: Admin
) -> None:
    """No turn of the topic comes in between: its next one is most of an hour away."""
    page.go(served.page(served.orders))
    page.see("#facts", "sealed ledger")
    before = len(served.api(f"topics/{served.orders.rest_path}").json()["partitions"])
    assert before == 2
    sealed = page.script("return document.getElementById('facts').innerText")
    [had] = re.findall(r"in (\d+) sealed", sealed)
    served.send(cluster, admin)

    def both() -> tuple[int, int, str]:
        header, rows, age = page.script(
            "const cells = (at) => [...document.querySelectorAll('#partitions tr')]"
            ".map((row) => Number(row.cells[at].innerText));"
            "return [document.getElementById('facts').innerText, cells(4),"
            " document.getElementById('as-of').innerText]"
        )
        [ledgers] = re.findall(r"in (\d+) sealed", header)
        assert int(ledgers) == sum(rows), "whenever one looks"
        return int(ledgers), sum(rows), age

    page.until("two more", lambda: both()[0] == int(had) + 2)
    assert re.fullmatch(r"as of \d+ s ago", both()[2])
    # The list of all topics has the same, and the age of what it shows.
    page.go("")
    more = str(int(had) + 2)
    found = page.until(  # it is made once a second
        "the row", lambda: (r := row(page, str(served.orders))).get("Ledgers") == more and r
    )
    assert re.fullmatch(r"\d+ s ago", found["As of"])
    metrics = served.get("metrics").text
    topic = f'pulsar_lake_topic_lag_ledgers{{topic="{served.orders}"}}'
    assert f"{topic} {float(int(had) + 2)}\n" in metrics


LAYOUT = """
const [segments, window, width, options, done] = arguments;
import(new URL('static/timeline.js', location).href).then(({ layout }) => done(
  layout(segments, window, width, options)
    .map(({ x0, x1, some }) => [x0, x1, some.map((one) => one.first)])));
"""


def segment(ledger: int, begin: float, end: float, **more: Any) -> dict[str, Any]:
    kind = {"state": "offloaded", "tier": "parquet", "empty": False}
    return {"first": ledger, "begin": begin, "end": end, **kind, **more}


def test_every_block_has_its_share(served: Served, page: Browser) -> None:
    page.go(served.page(served.orders))
    page.one(".seg")

    def layout(
        some: list[dict[str, Any]], upto: float, **options: bool
    ) -> list[tuple[float, float, list[int]]]:
        answer: list[list[Any]] = page.driver.execute_async_script(
            LAYOUT, some, [0, upto], 1000, options
        )
        found = [(left, right, ledgers) for left, right, ledgers in answer]
        assert [ledger for *_, ledgers in found for ledger in ledgers] == [
            one["first"] for one in some
        ]
        edge = 0.0
        for left, right, _ in found:
            assert edge <= left + 1e-6, "none over another"
            assert right - left >= 6 - 1e-6, "none too narrow to point at"
            edge = right
        assert edge <= 1000 + 1e-6
        return found

    # Where there is room for all, each is where its time is.
    apart = [segment(n, 10 * n, 10 * n + 5) for n in range(10)]
    assert [one[:2] for one in layout(apart, 100)] == [(100 * n, 100 * n + 50) for n in range(10)]
    # A moment has its share, and the gap after it is still there.
    short = [segment(1, 0, 0), segment(2, 0, 0), segment(3, 900, 1000)]
    assert [one[:2] for one in layout(short, 1000)] == [(0, 12), (12, 24), (900, 1000)]
    # Without entries: no time at all, and the open one at the end, whatever is shown.
    opened = segment(4, 3000, 3000, state="open", tier="broker", empty=True)
    assert layout([*short, opened], 1000)[-1] == (988, 1000, [4])
    assert len(layout([segment(1, 0, 0), segment(2, 0, 999), opened], 1000)) == 3
    # Hundreds fit; neighbours of one kind stand for each other, but what is lost stays apart.
    many = [segment(n, n, n + 1) for n in range(900)]
    many[300]["state"] = "lost"
    crowded = layout(many, 900)
    assert len(crowded) > 60
    assert [300] in [ledgers for *_, ledgers in crowded]
    mixed = [segment(n, n, n + 1, tier="parquet" if n % 2 else "broker") for n in range(900)]
    assert len(layout(mixed, 900)) > 60
    assert len(layout(many, 900, equal=True)) > 60
    burst = [*(segment(n, 5, 5) for n in range(400)), segment(400, 5000, 10000)]
    [*left, (begin, end, _)] = layout(burst, 10000)
    assert (begin, end) == (500, 1000)
    assert left[-1][1] <= 450, "the time between is still seen"


def test_what_pulsar_has_offloaded(
    served: Served, page: Browser, cluster: Cluster, admin: Admin, tiered: TieredStorage
) -> None:
    """Beside what bookies have, with words of its own."""
    topic = Topic.parse(f"{served.quiet.tenant}/{served.quiet.namespace}/moved")
    tiered.use(f"{topic.tenant}/{topic.namespace}", keep=True)
    send(cluster, admin, topic)
    tiered.offload(topic.full_name)
    send(cluster, admin, topic)
    page.go(served.page(topic))
    page.see("#timeline-note", "1 tiered", "1 bookkeeper", "no table yet")
    page.script("document.querySelector('.seg.tiered').focus()")
    page.see("#tip", "in Pulsar's own tiered storage", "moved there by Pulsar")


def test_a_phone(served: Served, page: Browser) -> None:
    page.size(360, 740)
    for path, there in (("", "#rows tr"), (served.page(served.orders), ".seg")):
        page.go(path)
        page.one(there)
        assert page.script("return document.documentElement.scrollWidth") <= 360
        outside = page.script(
            "return [...document.querySelectorAll('main *')].filter((one) => one.offsetParent"
            " && one.getBoundingClientRect().right > 361).map((one) => one.outerHTML)"
        )
        assert outside == []
    # A tap gives it the focus. Not by position: narrow blocks overlap, and the page is drawn anew.
    page.script(
        "const width = (one) => one.getBoundingClientRect().width;"
        "const all = [...document.querySelectorAll('.seg')];"
        "all.reduce((a, b) => (width(a) < width(b) ? b : a)).focus()"
    )
    page.see("#tip", "Ledger")


def offloaded(served: Served, topic: Topic) -> dict[str, Any]:
    """What a request for the topic comes to."""
    path = f"topics/{topic.rest_path}/offload"
    made = served.api(path, "POST", authorization=f"Bearer {TOKEN}")
    assert made.status_code == 202
    url = f"{served.url}{made.json()['url'][1:]}?wait=60"

    def over() -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(url, timeout=90).json()
        return found if found["state"] in ("done", "failed") else {}

    found = wait_until("the end", over, 180)
    assert found["state"] == "done", found
    return found


def test_the_api(served: Served, cluster: Cluster, admin: Admin) -> None:
    path = f"topics/{served.orders.rest_path}"
    assert served.api(f"{path}/offload", "POST").status_code == 401
    over = offloaded(served, served.orders)
    rows = served.sent

    def settled(what: str) -> dict[str, Any]:  # a browser may have asked just before the commit
        value: dict[str, Any] = served.api(f"{path}/{what}").json()
        return value if sum(one["rows"] or 0 for one in value[what]) == rows else {}

    commits = wait_until("the commits", lambda: settled("commits"))["commits"]
    found = wait_until("the segments", lambda: settled("segments"))
    assert {one["tier"] for one in found["segments"] if one["rows"]} == {"parquet"}
    status = served.api(path).json()
    assert [one["partition"] for one in status["partitions"]] == [0, 1]
    assert status["errors"] == []
    fields = [{"name": "id", "type": "long"}]
    order = json_schema({"type": "record", "name": "Order", "fields": fields})
    publish(cluster.service_url, served.quiet.full_name, [b"no json"] * 5, schema=order)
    admin.seal(served.quiet.full_name)
    [commit] = offloaded(served, served.quiet)["commits"]
    assert (commit["rows"], commit["rescued"]) == (5, 5)
    metrics = served.get("metrics").text
    assert f"pulsar_lake_rows_total {float(rows + 5)}\n" in metrics
    assert "pulsar_lake_rescued_rows_total 5.0\n" in metrics
    assert f'pulsar_lake_topic_lag_ledgers{{topic="{served.orders}"}} 0.0\n' in metrics
    assert served.get("healthz").status_code == 200
    ready = served.get("readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ok"})
    for answer in (status, found, commits, over, metrics, served.run.err):
        assert TOKEN not in str(answer)


def test_a_port_in_use_is_one_line(served: Served, tmp_path: Path, cluster: Cluster) -> None:
    address = served.url.removeprefix("http://").rstrip("/")
    settings = Settings(tmp_path, cluster, str(tmp_path / "lake"), http={"address": address})
    second = Run(settings, "offload", str(served.orders))
    assert second.code() == 1
    [line] = second.err.splitlines()
    assert f"error: cannot listen on {address}: Address already in use" in line
    assert "http.address" in line


def test_when_the_daemon_is_gone(served: Served, browser: Browser) -> None:
    browser.go("")
    browser.see("#live", "live")
    served.run.terminate()  # as service managers end it
    assert served.run.code() == 0
    assert "Traceback" not in served.run.err
    browser.see("#live", "no answer since ")
    assert browser.script("return document.body.classList.contains('stale')")
    assert str(served.orders) in browser.text("#rows"), "what was known is still there"
    wait_until("the port", lambda: _refused(served.url))


def _refused(url: str) -> bool:
    try:
        httpx.get(url)
    except httpx.TransportError:
        return True
    return False
