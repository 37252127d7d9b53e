"""kill -9 at each step of a micro-batch, and rows that move before it is run again."""

import os
import re
import signal
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from offloader.config import Config
from reader.clients import Clients
from reader.model import Topic
from reader.plan.reads import SplitsRead
from reader.sources import RowFormat, read_rows
from reader.storage import open_storage
from reader.stream import StreamOptions, Tails, TopicStream
from testbed.admin import wait_until
from testbed.cluster import Cluster
from testbed.faults import FaultyStore
from testbed.proxy import TcpProxy
from testbed.s3 import S3
from tests.spark.stream.moves import Moves
from tests.spark.stream.sinks import Sinks, check_rows, check_state, published
from tests.support.running import Settings
from tests.support.stream_program import PLANNER, TASKS, Job, StreamProgram


def test_both_halves_are_of_one_plan_whoever_is_asked(
    moves: Moves, lake_config: Config, tmp_path: Path
) -> None:
    """The planner died after it had said that all is hot, and now nothing is: another is asked."""
    moves.send(30)
    moves.seal()
    moves.send(30)
    options = StreamOptions.of({"topic": moves.topic, "startingPosition": "earliest"})

    def stream(clients: Clients) -> TopicStream:
        return TopicStream(clients, options, Tails(clients), warn=print)

    with Clients(lake_config) as clients:
        first = stream(clients)
        (start, _), end = first.bounds(), first.end()
        token, planned = first.plan(start, end)
        assert [one.snapshot.version for one in planned] == [None]
        moves.to_compacted_files()
        [batch] = stream(clients).batch(start, end, token)
        columns = batch.snapshot.columns
        form = RowFormat(batch.snapshot.fields, batch.snapshot.schemas, columns)
        rows = [
            row
            for part in read_rows(clients, SplitsRead(batch.plan.splits), form)
            for row in part.column("id").to_pylist()
        ]
        assert sorted(rows) == list(range(60))
        _, [anew] = stream(clients).plan(start, end)
        assert not anew.plan.splits


class Step(NamedTuple):
    """A request to the store at which a query's program dies: before it is done, or once it is.

    ``path``: a regular expression, below the checkpoint or the sink.
    """

    query: str
    path: str
    applied: bool


STEPS = (
    Step("rows", "sources/0/bounds", applied=True),
    Step("rows", "offsets/0", applied=False),
    Step("rows", "commits/0", applied=True),
    Step("rows", "offsets/1", applied=True),
    Step("rows", r"1/.*\.parquet", applied=False),
    Step("rows", "1/_SUCCESS", applied=True),
    Step("rows", "commits/1", applied=False),
    Step("state", r"state/0/\d+/\d+\.delta", applied=False),
    Step("state", r"\d+/_SUCCESS", applied=True),
    Step("state", r"commits/\d+", applied=False),
)


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_kill_at_each_step(
    moves: Moves, cluster: Cluster, s3: S3, lake_config: Config, tmp_path: Path
) -> None:
    """Checkpoint and sink are on S3: a program dies at the very request that is the step."""
    folder = f"streams-{uuid.uuid4()}"
    filesystem, _ = open_storage(lake_config.storage).directory(Topic.parse(moves.topic))
    sinks = Sinks(filesystem, f"{s3.bucket}/{folder}")
    with FaultyStore(s3.endpoint) as store:
        settings = stream_settings(tmp_path, cluster, s3, store.endpoint, lake_config)

        def program(query: str) -> StreamProgram:
            # The second query's micro-batches end in the middle of ledgers, and of files.
            options = {"maxMessagesPerTrigger": "370"} if query == "state" else {}
            job = Job(
                config=str(settings.path),
                topics=[moves.topic],
                number="id",
                place=f"s3a://{s3.bucket}/{folder}",
                queries=[query],
                options={query: options},
            )
            return StreamProgram(tmp_path, job)

        seen: list[tuple[str, dict[int, Any], dict[int, pa.Table]]] = []
        for step in STEPS:
            moves.send(60)
            moves.seal()
            moves.send(40)
            die_at(store, folder, step, program)
            seen.append((step.query, sinks.offsets(step.query), sinks.written(step.query)))
            moves.to_compacted_files()
        for query in ("rows", "state"):
            last = program(query)
            assert last.code(240) == 0, last.log
    sent = published(moves.sent)
    check_rows(sinks, sent)
    check_state(sinks, sent)
    for query, offsets, written in seen:
        assert offsets.items() <= sinks.offsets(query).items()
        again = sinks.written(query)
        for number, rows in written.items():
            assert same_rows(rows, again[number]), f"{query}: micro-batch {number}"
    assert max(number for query, offsets, _ in seen for number in offsets if query == "rows") == 1


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """But for which task has read them."""
    tables = (
        table.drop_columns(["task", "row"]) if "row" in table.schema.names else table
        for table in (one, other)
    )
    first, second = (sorted(map(str, table.to_pylist())) for table in tables)
    return first == second


def die_at(
    store: FaultyStore, folder: str, step: Step, program: Callable[[str], StreamProgram]
) -> None:
    """Run a program that is killed at a step."""
    path = re.compile(f"/{folder}/{step.query}(-checkpoint)?/{step.path}$")
    started: list[StreamProgram] = []

    def kill() -> bool:
        started[0].kill()
        return False

    def is_step(method: str, target: str) -> bool:
        return method == "PUT" and path.search(target.partition("?")[0]) is not None

    rule = store.call(is_step, kill, applied=step.applied)
    started.append(program(step.query))
    assert started[0].code(240) == -9, f"{step}: {started[0].log}"
    assert rule.hits == 1
    store.heal()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_query_outlives_its_workers_and_its_planner(
    moves: Moves, cluster: Cluster, s3: S3, lake_config: Config, tmp_path: Path
) -> None:
    """Both are killed in the middle of a micro-batch, whose tasks wait for bookies."""
    sinks = Sinks(pafs.LocalFileSystem(), str(tmp_path))
    with ExitStack() as stack:
        bookies = {
            one.address: stack.enter_context(TcpProxy(one.address)) for one in cluster.bookies
        }
        settings = stream_settings(
            tmp_path,
            cluster,
            s3,
            s3.endpoint,
            lake_config,
            bookies={address: proxy.address for address, proxy in bookies.items()},
            bookie_timeout="60s",
        )
        job = Job(
            config=str(settings.path),
            topics=[moves.topic],
            number="id",
            place=str(tmp_path),
            now=False,
        )
        moves.send(100)
        program = StreamProgram(tmp_path, job, attempts=1_000)
        stack.callback(program.kill)

        def wait_for_rows() -> None:
            def all_there() -> bool:
                assert program.running, program.log
                if sum(map(len, sinks.written("rows").values())) < len(moves.sent):
                    return False
                [*_, end], state = sinks.offsets("rows").values(), sinks.offsets("state")
                return end in state.values() and state.keys() == sinks.written("state").keys()

            wait_until("all rows", all_there, timeout=180)

        wait_for_rows()
        for proxy in bookies.values():
            proxy.stall()
        batches = len(sinks.offsets("rows"))
        moves.send(100)
        wait_until("a micro-batch", lambda: len(sinks.offsets("rows")) > batches)

        def attempt_failed() -> bool:
            if re.search("Task attempt .* aborted", program.log):
                return True
            program.kill_some(TASKS)  # which may have no task yet
            return False

        # Spark says nothing of a worker that dies before its task waits for the bookies.
        wait_until("a task that fails", attempt_failed, timeout=240, interval=5)
        [planner] = program.pids_of(PLANNER)
        os.kill(planner, signal.SIGKILL)
        for proxy in bookies.values():
            proxy.resume()
        wait_for_rows()
        # And one that dies while it is asked: every 50 ms.
        [planner] = program.pids_of(PLANNER)
        os.kill(planner, signal.SIGSTOP)
        moves.send(50)
        time.sleep(0.5)
        os.kill(planner, signal.SIGKILL)
        wait_for_rows()
        assert program.running
        assert program.events("error") == []
    check_rows(sinks, published(moves.sent))
    check_state(sinks, published(moves.sent))


def stream_settings(
    directory: Path, cluster: Cluster, s3: S3, endpoint: str, config: Config, **pulsar: Any
) -> Settings:
    return Settings(
        directory,
        cluster,
        config.storage.uri,
        s3.options_at(endpoint),
        pulsar=pulsar,
        spark={"master": "local[2]", "conf": {"spark.driver.memory": "1g"}},
    )
