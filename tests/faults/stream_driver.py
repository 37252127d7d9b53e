"""Streaming queries over all topics of the run, in a process that is killed again and again.

What ends a query with a clear error that passes is an operator's to start again, and the program
does so. At the end their sinks have each message once (one of them is a topic), and the state that
Python counts.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reader import open_topic
from testbed.process import wait_for
from tests.faults.queries import WrongAnswerError, is_clear
from tests.faults.streams import Stream
from tests.support.running import Settings
from tests.support.stream_program import REMAINDERS, Job, StreamProgram

_SECONDS = 1_200
_PASSING = ("UnavailableError", "CorruptError")
"""Classes of our errors that may end a stream here. Not ConfigurationError, which a loss of data
is, too: nothing is ever lost, as the offloader keeps in Pulsar what is not in the table."""


class StreamDriver:
    """The program, started again after each death. What it writes lies in ``directory``.

    ``copies``: the topic that one of its queries writes to.
    """

    def __init__(
        self, directory: Path, settings: Settings, streams: Sequence[Stream], copies: str
    ) -> None:
        tenant, namespace, name = copies.removeprefix("persistent://").split("/")
        self._settings = settings
        self._copies = copies
        self._directory = directory
        self._streams = streams
        self._lock = threading.Lock()
        self._lives: list[StreamProgram] = []
        self._under_faults = 0
        self._job = Job(
            config=str(settings.path),
            topics=[one.topic for one in streams],
            number=f"coalesce({', '.join(sorted({one.kind.number for one in streams}))})",
            place=str(directory),
            queries=["rows", "state", "copy"],
            target=f"pulsar.`{tenant}/{namespace}`.`{name}`",
            options={"state": {"maxMessagesPerTrigger": "5000"}},
            now=False,
            every=1.0,
            restarts=True,
        )

    def start(self) -> None:
        """Once each topic has a message, and so its schema."""
        wait_for("first messages", lambda: all(len(one.acked()) for one in self._streams))
        self._lives.append(StreamProgram(self._directory, self._job))

    def kill(self, until: Callable[[], object]) -> None:
        """SIGKILL, at whatever it does; started again after ``until``."""
        with self._lock:
            self._check_alive()
            self._lives[-1].kill()
            until()
            self._lives.append(StreamProgram(self._directory, self._job))

    def kill_some(self, module: str) -> bool:
        """SIGKILL for those of its processes that run a Python module; see `StreamProgram`."""
        with self._lock:
            return self._lives[-1].kill_some(module)

    def has_done_a_batch(self) -> bool:
        """Whether the program has, since it was started last."""
        return bool(self._lives[-1].events("batch"))

    def check_alive(self) -> None:
        """It must not have ended by itself."""
        with self._lock:
            self._check_alive()

    def _check_alive(self) -> None:
        assert self._lives[-1].running, f"the stream program has ended:\n{self._log[-3000:]}"

    def finish(self) -> None:
        """Read all that there is, now that nothing fails and nothing is sent.

        Without limits for a micro-batch: after hours, some million messages may be left.
        """
        self._lives[-1].kill()
        self._under_faults = self._micro_batches()
        rest = replace(self._job, now=True, restarts=False, options={})
        self._lives.append(StreamProgram(self._directory, rest))
        code = self._lives[-1].code(_SECONDS)
        assert code == 0, f"exit code {code}:\n{self._lives[-1].log[-3000:]}"

    def end(self) -> None:
        """However the run went."""
        self._lives[-1].kill()

    # -- what it said --------------------------------------------------------------------------

    @property
    def _log(self) -> str:
        return self._lives[0].log  # and of all that came later

    def errors(self) -> Counter[str]:
        """What queries ended of, without names and numbers."""
        found: Counter[str] = Counter()
        for error in self._lives[0].events("error"):
            first = next(iter(error["text"].splitlines()), "")
            line = f"{error['ours']}: {error['message']}" if error["ours"] else first
            found[re.sub(r"persistent://\S+|\S*/\S*|\d+", "…", line)[:90]] += 1
        return found

    def bugs(self) -> list[str]:
        """Errors that may not end a stream here, or that say nothing."""
        return [
            f"stream {error['query']}: {error['ours']} {error['text'][:2000]}"
            for error in self._lives[0].events("error")
            if not (
                error["ours"] in _PASSING if error["ours"] else is_clear(Exception(error["text"]))
            )
        ]

    # -- what it wrote -------------------------------------------------------------------------

    def check(self) -> dict[str, int]:
        """What happened, counted. Raises WrongAnswerError unless each message is there once."""
        rows = self._written("rows")
        for stream in self._streams:
            here = rows.filter(pc.equal(rows["topic"], stream.topic))
            _check_rows(stream, here)
        wanted = {
            (row["topic"], row["partition"], row["key"]): (row["number_count"], row["number_sum"])
            for row in rows.append_column("key", _key(rows))
            .group_by(["topic", "partition", "key"])
            .aggregate([("number", "count"), ("number", "sum")])
            .to_pylist()
        }
        state = self._written("state")
        found = {
            (row["topic"], row["partition"], row["key"]): (row["messages"], row["total"])
            for row in state.sort_by("batch").to_pylist()  # the last one of a key counts
        }
        if found != wanted:
            wrong = [
                (key, found.get(key), wanted[key])
                for key in wanted
                if found.get(key) != wanted[key]
            ]
            raise WrongAnswerError(f"the state is not what was published: {wrong[:5]}")
        self._check_copies()
        return {
            "rows": len(rows),
            "micro-batches": self._micro_batches(),
            "micro-batches before everything was mended": self._under_faults,
            "starts of the program": len(self._lives),
            "starts of a query": len(self._lives[0].events("started")),
            "ends by an error": sum(self.errors().values()),
        }

    def _check_copies(self) -> None:
        """The topic has each message once."""
        columns = ["number", "origin", "__error", "__partition", "__ledgerId", "__entryId"]
        with open_topic(self._settings.path, self._copies) as topic:
            found = topic.scan(columns=[*columns, "__batchIndex"]).read_all()
        if found["__error"].null_count != len(found):
            raise WrongAnswerError("the copies have rescued rows")
        topics = pc.replace_substring_regex(found["origin"], ":-?[0-9]+$", "")
        for stream in self._streams:
            numbers = found.filter(pc.equal(topics, stream.topic))["number"].to_numpy()
            if not np.array_equal(np.sort(numbers), np.arange(stream.sent)):
                counts = np.bincount(numbers, minlength=stream.sent)
                raise WrongAnswerError(
                    f"{stream.topic}: {len(numbers)} copies of {stream.sent}; missing "
                    f"{np.flatnonzero(counts == 0)[:5]}, doubled {np.flatnonzero(counts > 1)[:5]}"
                )

    def _written(self, query: str) -> pa.Table:
        """All that its micro-batches have, with their numbers."""
        parts = []
        for number in self._numbers(query):
            part = pq.read_table(self._directory / query / str(number))
            parts.append(part.append_column("batch", pa.array([number] * len(part), pa.int64())))
        return pa.concat_tables(parts)

    def _micro_batches(self) -> int:
        return len(self._numbers("rows")) + len(self._numbers("state"))

    def _numbers(self, query: str) -> list[int]:
        return sorted(int(one.name) for one in (self._directory / query).glob("*"))


def _key(rows: pa.Table) -> pa.Array:
    return pa.array(rows["number"].to_numpy() % REMAINDERS)


def _check_rows(stream: Stream, rows: pa.Table) -> None:
    columns: dict[str, Any] = {
        name: rows[name].to_numpy() for name in rows.column_names if name not in ("topic", "error")
    }
    numbers = columns["number"]
    if rows["error"].null_count != len(rows):
        raise WrongAnswerError(f"{stream.topic}: the stream has rescued rows")
    if not np.array_equal(np.sort(numbers), np.arange(stream.sent)):
        counts = np.bincount(numbers, minlength=stream.sent)
        raise WrongAnswerError(
            f"{stream.topic}: {len(numbers)} rows of {stream.sent} at the stream's sink; missing "
            f"{np.flatnonzero(counts == 0)[:5]}, doubled {np.flatnonzero(counts > 1)[:5]}"
        )
    places = ["partition", "ledger", "entry", "place"]
    order = np.lexsort([columns[name] for name in reversed(places)])
    same = np.diff(columns["partition"][order]) == 0
    for name, least in (("number", 1), ("batch", 0)):
        if (np.diff(columns[name][order])[same] < least).any():
            raise WrongAnswerError(f"{stream.topic}: {name} does not grow with positions")
    # As they came: each task has the messages of a ledger in their order.
    order = np.lexsort([columns[name] for name in ("row", "ledger", "partition", "task", "batch")])
    same = np.ones(max(0, len(order) - 1), dtype=np.bool_)
    for name in ("batch", "task", "partition", "ledger"):
        same &= np.diff(columns[name][order]) == 0
    if (np.diff(numbers[order])[same] <= 0).any():
        raise WrongAnswerError(f"{stream.topic}: not in order within a micro-batch")
