"""Queries while things fail: each answer is right, or a clear error."""

import random
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from reader.errors import PulsarLakeError
from reader.model import Topic
from spark_ext import PulsarLake, error_of
from tests.faults.streams import Stream

_SLOWEST = 600.0
"""Seconds. An answer that takes longer counts as none: a busy machine took 255 s once."""
_AFTER_AN_ERROR = 2.0
_KEPT = 3

_WITH_HINT = re.compile(r"\([a-z].*\)\s*\Z", re.DOTALL)  # as the planner's errors end
_STORAGE = re.compile(
    r"AwsServiceException|AWSStatus\w+|AWSServiceIOException|AWSClientIOException|S3Exception|"
    r"FAILED_READ_FILE|SdkClientException|DELTA_\w+|ConnectionClosedException"
)

_CALLBACK = re.compile(r"raised by the Python Proxy.*?\bPy4JJavaError: ", re.DOTALL)
"""The traceback of a function for foreachBatch, up to the error that Spark raised in it."""


class WrongAnswerError(AssertionError):
    """Rows are missing, doubled, out of order or not what was sent."""


@dataclass
class Asked:
    """``checked``: rows that were compared with what was sent; ``errors`` by their first words."""

    right: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    unclear: list[str] = field(default_factory=list)
    checked: int = 0
    seconds: list[float] = field(default_factory=list)


class Questions:
    """Asks one of several questions about one of the streams, and compares."""

    def __init__(self, lake: PulsarLake, streams: Sequence[Stream], seed: int) -> None:
        self._lake = lake
        self._streams = streams
        self._random = random.Random(f"{seed} questions")
        self._kept: list[tuple[Stream, DataFrame, npt.NDArray[np.int64]]] = []
        self.asked = Asked()

    @property
    def spark_pid(self) -> int:
        """Of the queries' JVM."""
        return int(self._lake.spark._jvm.ProcessHandle.current().pid())  # type: ignore[union-attr]

    def ask(self) -> None:
        """One question. Raises WrongAnswerError; a failed query is counted."""
        stream = self._random.choice(self._streams)
        kind = self._random.choices(["all", "count", "filter", "again"], [5, 2, 3, 2])[0]
        begun = time.monotonic()
        try:
            self.asked.checked += getattr(self, f"_{kind}")(stream)
        except WrongAnswerError:
            raise
        except Exception as error:  # noqa: BLE001 - of whatever kind: it is looked at
            text = str(error)
            if not is_clear(error):
                self.asked.unclear.append(text[:2000])
            self.asked.errors[_summary(error)] += 1
            time.sleep(_AFTER_AN_ERROR)
        else:
            self.asked.right[kind] += 1
        seconds = time.monotonic() - begun
        self.asked.seconds.append(seconds)
        if seconds > _SLOWEST:
            raise WrongAnswerError(f"{kind} of {stream.topic} took {seconds:.0f} s")

    def finally_all(self, stream: Stream) -> int:
        """Exactly what was sent, now that nothing is sent any more; how many."""
        found = self._numbers(stream, self._lake.table(stream.topic))
        if not np.array_equal(np.sort(found), np.arange(stream.sent)):
            raise WrongAnswerError(f"{stream.topic}: {len(found)} rows of {stream.sent}")
        return len(found)

    # -- the questions -------------------------------------------------------------------------

    def _all(self, stream: Stream) -> int:
        acked = stream.acked()
        frame = self._lake.table(stream.topic)
        found = self._numbers(stream, frame)
        self._compare(stream, found, acked, 0, 1 << 62)
        if len(self._kept) == _KEPT:
            self._kept.pop(self._random.randrange(_KEPT))
        self._kept.append((stream, frame, np.sort(found)))
        return len(found)

    def _again(self, stream: Stream) -> int:
        """A DataFrame is one snapshot: what was hot then may be cold and trimmed by now."""
        if not self._kept:
            return self._all(stream)
        stream, frame, before = self._random.choice(self._kept)
        found = np.sort(self._numbers(stream, frame))
        if not np.array_equal(found, before):
            raise WrongAnswerError(
                f"{stream.topic}: a DataFrame had {len(before)} rows, then {len(found)}: "
                f"{_some(np.setxor1d(before, found))}"
            )
        return len(found)

    def _filter(self, stream: Stream) -> int:
        acked = stream.acked()
        least, most = sorted(self._random.randrange(max(1, stream.sent)) for _ in range(2))
        where = f"{stream.kind.number} BETWEEN {least} AND {most}"
        found = self._numbers(stream, self._lake.table(stream.topic).where(where))
        self._compare(stream, found, acked, least, most)
        return len(found)

    def _count(self, stream: Stream) -> int:
        acked = len(stream.acked())
        topic = Topic.parse(stream.topic)
        name = f"pulsar.`{topic.tenant}/{topic.namespace}`.`{topic.name}`"
        [row] = self._lake.spark.sql(f"SELECT count(*) AS rows FROM {name}").collect()
        if not acked <= row["rows"] <= stream.sent:
            raise WrongAnswerError(
                f"{stream.topic}: count {row['rows']}, {acked} taken before, {stream.sent} sent"
            )
        return int(row["rows"])

    # -- comparing -----------------------------------------------------------------------------

    def _numbers(self, stream: Stream, frame: DataFrame) -> npt.NDArray[np.int64]:
        """The rows' numbers, after a check of their order within each partition."""
        places = ["__partition", "__ledgerId", "__entryId", "__batchIndex"]
        selected = [f"{stream.kind.number} AS number", *places, "__error", "__rescued"]
        table: Any = frame.selectExpr(*selected).toArrow()
        if table["number"].null_count:
            rescued = table.filter(pc.is_null(table["number"]))
            raise WrongAnswerError(
                f"{stream.topic}: {rescued.num_rows} rows are rescued: "
                f"{rescued.slice(0, 3).to_pylist()}"
            )
        columns = {name: table[name].to_numpy() for name in table.column_names}
        order = np.lexsort([columns[name] for name in reversed(places)])
        numbers: npt.NDArray[np.int64] = columns["number"][order]
        same = np.diff(columns["__partition"][order]) == 0
        if (np.diff(numbers)[same] <= 0).any():
            wrong = numbers[1:][same & (np.diff(numbers) <= 0)]
            raise WrongAnswerError(f"{stream.topic}: doubled or out of order: {_some(wrong)}")
        return numbers

    def _compare(
        self,
        stream: Stream,
        found: npt.NDArray[np.int64],
        acked: npt.NDArray[np.int64],
        least: int,
        most: int,
    ) -> None:
        if len(np.unique(found)) != len(found):
            raise WrongAnswerError(f"{stream.topic}: rows are doubled")
        wanted = acked[(acked >= least) & (acked <= most)]
        if len(missing := np.setdiff1d(wanted, found)):
            raise WrongAnswerError(f"{stream.topic}: {len(missing)} missing: {_some(missing)}")
        if len(found) and not (least <= found.min() and found.max() <= min(most, stream.sent - 1)):
            raise WrongAnswerError(f"{stream.topic}: rows that nobody sent or asked for")


def is_clear(error: Exception) -> bool:
    """Whether its text says what is wrong: one of ours, or the storage's by Spark.

    Not one of no class but the root's: that is an error of the planner itself.
    """
    if (ours := error_of(error)) is not None:
        return type(ours) is not PulsarLakeError
    text = _CALLBACK.sub("", str(error))
    if "Traceback" in text:  # of a Python worker, and not of ours: a bug
        return False
    return bool(_STORAGE.search(text) or _WITH_HINT.search(text))


def _summary(error: Exception) -> str:
    text, ours = str(error), error_of(error)
    cause = re.search(r"Caused by: (.*)", text)
    first = next((one for one in text.splitlines() if one.strip()), text)
    line = cause[1] if cause and first.startswith("An error") else first
    line = f"{type(ours).__name__}: {ours}" if ours else line
    return re.sub(r"persistent://\S+|\S*/\S*|\d+", "…", line)[:90]


def _some(numbers: npt.NDArray[np.int64]) -> str:
    return ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
