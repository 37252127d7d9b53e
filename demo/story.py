"""The steps of the demo, one after the other."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from demo import queries
from demo.chart import NAMES, draw
from demo.flights import COLUMNS, SCHEMA, load_flights, messages
from demo.insert import insert_cancelled
from demo.live import LiveProducer
from demo.queries import MONTHS, Answer
from demo.stage import Stage
from demo.stream import FlightStream
from demo.tiers import time_tiers
from demo.view import DelaysView
from reader.model import Tier
from spark_ext import PulsarLake
from testbed.publish import Message
from testbed.screen import Screen

_LIVE_SECONDS = 100  # each second the producer publishes a hundredth of what remains
_LIVE_QUERIES = 3
# Monday 4 to Sunday 10 March 2013 (UTC), within the offloaded months.
_WEEK = (1362355200000, 1362960000000)
_WEEK_MONTH = 3
_PAUSE = 0.005  # publish times are whole milliseconds: keep the week's apart from its neighbours'


def tell(screen: Screen, out: Path) -> None:
    """Run the demo. Failed checks are kept by `screen`; anything else is raised."""
    flights = load_flights()
    screen.title(f"pulsar-lake: {len(flights):,} flights in Pulsar as one SQL table")
    with ExitStack() as stack:
        with screen.step("Start a Pulsar (ZooKeeper, 3 bookies, a broker) and an S3 server"):
            # Small splits: a file for each ledger, to show how files are pruned.
            stage = stack.enter_context(Stage("flights", partitions=3, split_bytes="64KiB"))
        # Our JVMs live for minutes, too short for the second compiler to pay off. The servers are
        # running already and keep it.
        os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        lake = stack.enter_context(PulsarLake(stage.config))
        # Called first on exit, so that nothing interrupts the clean-up.
        stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)
        story = _Story(screen, stage, lake, flights)
        story.publish_and_offload()
        story.query_while_publishing()
        story.compare_tiers(out)
        with screen.step("End every process of the demo"):
            stack.close()


class _Story:
    def __init__(self, screen: Screen, stage: Stage, lake: PulsarLake, flights: Any) -> None:
        self._screen = screen
        self._stage = stage
        self._lake = lake
        self._flights = flights
        self._truth = queries.expected(flights)
        self._months: dict[int, Any] = dict(list(flights.groupby("month")))
        self._week_published = (0, 0)
        self._tier_of_month: dict[int, Tier] = {}

    # --- months 1 to 9: sealed, and the first half offloaded ---

    def publish_and_offload(self) -> None:
        screen = self._screen
        with screen.step("Publish January to June, sealing the ledgers after each month"):
            self._publish(range(1, 7), seal=True)
        with screen.step("Offload them to a Delta table"):
            self._offload()
        self._tier_of_month |= dict.fromkeys(range(1, 7), Tier.PARQUET)
        with screen.step("Publish July to September, sealed too, but left in BookKeeper"):
            self._publish(range(7, 10), seal=True)
        self._tier_of_month |= dict.fromkeys(range(7, 10), Tier.BOOKKEEPER)
        with screen.step("Publish October and November into ledgers that stay open"):
            self._publish([10, 11], seal=False)
        self._tier_of_month |= dict.fromkeys(range(10, 13), Tier.BROKER)

    def _publish(self, months: Sequence[int], *, seal: bool) -> None:
        begun = time.monotonic()
        for month in months:
            self._publish_month(month)
            if seal:
                self._stage.seal()
        count = sum(len(self._months[month]) for month in months)
        self._screen.line(f"{count:,} flights, {count / (time.monotonic() - begun):,.0f} a second")

    def _publish_month(self, month: int) -> None:
        frame = self._months[month]
        if month != _WEEK_MONTH:
            self._send(messages(frame))
            return
        departure = frame["departure"]
        self._send(messages(frame[departure < _WEEK[0]]))
        time.sleep(_PAUSE)
        first = time.time_ns() // 1_000_000
        self._send(messages(frame[departure.between(*_WEEK, inclusive="left")]))
        last = time.time_ns() // 1_000_000
        time.sleep(_PAUSE)
        self._send(messages(frame[departure >= _WEEK[1]]))
        self._week_published = (first, last)

    def _send(self, flights: Iterator[Message]) -> None:
        self._stage.publish(flights, SCHEMA)

    def _offload(self) -> None:
        words = ("offload", "--once", "--now", self._stage.topic)
        self._screen.quote("$ pulsar-lake " + " ".join(words))
        for line in self._stage.command(*words):
            if " committed as version " in line:
                self._screen.line(line.partition(f"{self._stage.topic}: ")[2])

    # --- December: published while queries run ---

    def query_while_publishing(self) -> None:
        screen, december = self._screen, self._months[12]
        with LiveProducer(messages(december), len(december), self._send, _LIVE_SECONDS) as live:
            with screen.step("A producer starts on December; the segments by tier"):
                self._segments()
            with screen.step("One SQL table over all of it, while the producer publishes"):
                self._live_queries(live)
            with ExitStack() as running:
                with screen.step("The same as a stream: it goes on while the rest happens"):
                    stream = running.enter_context(
                        FlightStream(self._lake.spark, self._stage.table)
                    )
                    stream.check_first(screen, self._truth)
                with screen.step("One DataFrame is one snapshot"):
                    self._one_snapshot(live)
                with screen.step("One week is pruned to the segments that hold it"):
                    self._prune()
                with screen.step("The answer kept in a topic: a materialised view"):
                    view = running.enter_context(DelaysView(self._lake.spark, self._stage))
                    view.check_first(screen)
                with screen.step("The producer ends: the stream has all of the year"):
                    screen.check("the producer was still running until now", live.running)
                    live.finish()
                    stream.check_all(screen, self._truth)
                with screen.step("So has the view, and any reader of Pulsar sees each change"):
                    view.check_all(screen)
            with screen.step("Everything is checked against the source"):
                self._check_all(self._stage.table)
            with screen.step("Rows of a query become messages of another topic"):
                insert_cancelled(screen, self._lake.spark, self._stage, self._flights)

    def _segments(self) -> None:
        columns = ["carrier", "month", "dep_delay"]
        self._screen.quote(f"lake.explain({self._stage.topic!r}, columns={columns})")
        plan = self._lake.explain(self._stage.topic, columns=columns)
        rows = []
        for tier in NAMES:  # its Pulsar has no tiered storage
            of_tier = [one.segment for one in plan.segments if one.segment.tier == tier]
            states = ", ".join(sorted({one.state for one in of_tier}))
            entries = sum(one.entries for one in of_tier)
            size = sum(one.bytes for one in of_tier)
            rows.append([tier, states, len(of_tier), f"{entries:,}", f"{size / 1e6:.1f} MB"])
        self._screen.table(["tier", "state", "segments", "entries", "in BookKeeper"], rows, left=2)
        counts = [row[2] for row in rows]
        self._screen.check(
            "18 segments in the table, 9 sealed, 3 open", counts == [18, 9, 3], f"{counts}"
        )

    def _live_queries(self, live: LiveProducer) -> None:
        screen, text = self._screen, queries.by_carrier_and_month(self._stage.table)
        begun = time.monotonic()
        self._lake.spark.version  # noqa: B018 - starts it
        screen.line(f"Spark session: {time.monotonic() - begun:.1f} s")
        screen.quote(text)
        until_november = queries.until_november(self._truth)
        answer: Answer = {}
        wrong, seen, grows = "", [0], True
        for number in range(1, _LIVE_QUERIES + 1):
            begun = time.monotonic()
            answer = self._answer(text)
            took = time.monotonic() - begun
            rest = queries.until_november(answer)
            wrong = wrong or queries.differences(rest, until_november)
            seen.append(sum(count for (_, month), (count, _) in answer.items() if month == 12))
            grows = grows and seen[-2] < seen[-1] <= live.given
            screen.line(f"query {number}: {took:4.1f} s, {seen[-1]:,} flights of December so far")
        screen.check("January to November agree with pandas each time", not wrong, wrong)
        screen.check("December grows from query to query", grows, f"{seen[1:]} of {live.given}")
        self._show(answer)

    def _show(self, answer: Answer) -> None:
        flights: dict[str, int] = {}
        for (carrier, _), (count, _) in answer.items():
            flights[carrier] = flights.get(carrier, 0) + count
        busiest = sorted(flights, key=lambda carrier: -flights[carrier])[:6]
        rows = []
        for carrier in busiest:
            delays = [answer.get((carrier, month), (0, None))[1] for month in range(1, 13)]
            shown = ["-" if delay is None else f"{delay:.1f}" for delay in delays]
            rows.append([carrier, f"{flights[carrier]:,}", *shown])
        self._screen.table(["", "flights", *MONTHS], rows)
        self._screen.line("mean delay of departure in minutes; the six busiest of 16 carriers")

    def _one_snapshot(self, live: LiveProducer) -> None:
        count = f"SELECT count(*) AS n FROM {self._stage.table}"
        frame = self._lake.spark.sql(count)
        first, given = frame.collect()[0].n, live.given
        while live.given < given + 100 and live.running:
            time.sleep(0.1)
        time.sleep(1.5)  # a batch is sent within a second
        second, fresh = frame.collect()[0].n, self._lake.spark.sql(count).collect()[0].n
        self._screen.line(f"it counts {first:,}, then {second:,}; a new DataFrame {fresh:,}")
        self._screen.check("one DataFrame gives the same answer twice", first == second)
        self._screen.check("a new DataFrame sees what was published since", fresh > first)

    # --- one week ---

    def _prune(self) -> None:
        screen = self._screen
        inside = self._flights["departure"].between(*_WEEK, inclusive="left")
        week = int(inside.sum())
        first, last = self._week_published
        low, high = queries.timestamp(first), queries.timestamp(last)
        query = (
            f"SELECT count(*) AS n FROM {self._stage.table}\n"
            f"WHERE __publishTime BETWEEN {low}\n"
            f"                        AND {high}"
        )
        screen.quote(query)
        begun = time.monotonic()
        seen = self._lake.spark.sql(query).collect()[0].n
        took = time.monotonic() - begun
        screen.line(f"{seen:,} flights in {took:.1f} s; of all segments the query reads:")
        found = self._lake.explain(
            self._stage.topic,
            start=queries.moment(first),
            end=queries.moment(last),
            columns=["__publishTime"],
        )
        rows: list[list[object]] = []
        for tier in NAMES:
            of_tier = [one for one in found.segments if one.segment.tier == tier]
            kept = [one for one in of_tier if one.pruned is None]
            size = [sum(one.segment.bytes for one in some) for some in (of_tier, kept)]
            files: list[object] = ["", ""]
            if tier.cold:
                files = [found.files, found.files_read]
                size = [found.file_bytes, found.file_bytes_read]
            kib = [f"{one / 1024:,.0f}" for one in size]
            rows.append([tier, len(of_tier), len(kept), *files, *kib])
        header = ["tier", "segments", "read", "files", "read", "KiB", "read"]
        screen.table(header, rows)
        screen.check("the week by publish time agrees with pandas", seen == week, f"{seen} {week}")
        pruned = found.files_read * 4 <= found.files and found.files_read > 0
        screen.check("it reads 3 of 18 files", pruned, f"{found.files_read} of {found.files}")

        by_event = (
            f"SELECT count(*) AS n FROM {self._stage.table}\n"
            "WHERE __eventTime >= '2013-03-04' AND __eventTime < '2013-03-11'"
        )
        screen.quote(by_event)
        frame = self._lake.spark.sql(by_event)
        seen, read = frame.collect()[0].n, len(frame.inputFiles())
        screen.line(f"{seen:,} flights; Spark opens {read} of {found.files} Parquet files")
        screen.check("the week by event time agrees with pandas", seen == week, f"{seen} {week}")
        few = 0 < read * 4 <= found.files
        screen.check("event time prunes Parquet files too", few, f"{read} of {found.files}")

    # --- everything, exactly ---

    def _check_all(self, table: str) -> None:
        screen, spark = self._screen, self._lake.spark
        total = len(self._flights)
        counts = spark.sql(
            "SELECT count(*) AS messages,\n"
            "  count(DISTINCT __partition, __ledgerId, __entryId, __batchIndex) AS positions\n"
            f"FROM {table}"
        ).collect()[0]
        lost, doubled = total - counts.positions, counts.messages - counts.positions
        screen.line(f"{counts.messages:,} rows: {lost} lost, {doubled} duplicated")
        screen.check("no row is lost, none duplicated", lost == doubled == 0, f"{counts}")
        wrong = queries.differences(self._answer(queries.by_carrier_and_month(table)), self._truth)
        screen.check("flights and mean delay of all months agree with pandas", not wrong, wrong)
        names = ", ".join(f"`{name}`" for name in COLUMNS)
        whole = spark.sql(f"SELECT {names} FROM {table}").toArrow()
        wrong = queries.field_differences(whole, self._flights)
        screen.check("every field of every row equals the source", not wrong, wrong)

    def _answer(self, query: str) -> Answer:
        return queries.found(self._lake.spark.sql(query).collect())

    # --- the same from each tier ---

    def compare_tiers(self, out: Path) -> None:
        screen = self._screen
        with screen.step("Seal and offload the rest; Pulsar keeps its copy for comparison"):
            self._stage.seal()
            self._offload()
            self._check_all(self._stage.table)
        with screen.step("The same query from each tier alone"):
            frames = {tier: self._lake.table(self._stage.topic, tiers=tier) for tier in NAMES}
            seconds = time_tiers(screen, self._lake.spark, frames, self._truth)
            delays = {month: frame["dep_delay"].mean() for month, frame in self._months.items()}
            path = out / "demo.png"
            draw(path, delays, self._tier_of_month, seconds, len(self._flights))
            screen.line(f"chart: {path}")
