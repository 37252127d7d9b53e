"""The questions that Spark's JVM asks the planner, and the answers: the table of all messages.

A question names its answer: ``ListTopics(Question[Names])``. A message is a JSON object with a
member for each field (``encoding``), and a record in Java (``java_messages``). A value is text only
where Spark has it as text: a schema, a stream's offset, an SQL expression. ``columns`` is a schema
in Spark's JSON, ``schema`` one as DDL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, dataclass_transform

T = TypeVar("T")
A_co = TypeVar("A_co", covariant=True)

Scalar = bool | int | float | str | None
"""A literal of Spark's, as JSON has it."""


@dataclass_transform(frozen_default=True)
def message(kind: type[T]) -> type[T]:
    """Make a class of a message's fields a frozen value."""
    return dataclass(frozen=True, slots=True)(kind)


class Question(Generic[A_co]):
    """A question, whose answer is an ``A_co``."""


# -- the catalog -----------------------------------------------------------------------------------


@message
class Done:
    """The answer to what only has to succeed."""


@message
class Names:
    """Names of namespaces or topics."""

    names: tuple[str, ...]


@message
class ListNamespaces(Question[Names]):
    """Which namespaces may the client see?"""


@message
class FindNamespace(Question[Done]):
    """Does a namespace exist, and may the client see it?"""

    namespace: str


@message
class ListTopics(Question[Names]):
    """Which topics does a namespace have?"""

    namespace: str


@message
class SnapshotTable:
    """The hot or the cold rows of a snapshot, as a table of the catalog."""

    name: str  # in the catalog
    title: str  # for people
    cold: bool  # a version of the topic's Delta table
    schema: str
    rows: int | None  # None: not known
    bytes: int | None


@message
class TopicView:
    """A snapshot of a topic, as a view of the catalog."""

    namespace: str  # of the tables
    text: str
    schema: str
    properties: Mapping[str, str]
    tables: tuple[SnapshotTable, ...]  # that the text names


@message
class Relation:
    """What a name of the catalog stands for: one of the two."""

    view: TopicView | None
    table: SnapshotTable | None


@message
class LoadRelation(Question[Relation]):
    """What does a name stand for?"""

    catalog: str  # for the text of a view
    namespace: str
    name: str


@message
class LoadFormat(Question[TopicView]):
    """What does ``format("pulsar")`` read with these options?"""

    catalog: str  # for the text of the view
    options: Mapping[str, str]


@message
class LoadVersion(Question[SnapshotTable]):
    """Which cold table is a version of a topic's table?"""

    namespace: str
    name: str
    version: int | None  # None: by time
    at: int | None  # the newest that was made then or before, µs since the epoch


# -- filters ---------------------------------------------------------------------------------------


@message
class Expression:
    """A node of a filter: a call, a column or a literal."""

    op: str | None  # of a call; None: not one of Spark's portable functions
    args: tuple[Expression, ...]
    column: tuple[str, ...]  # names that lead to it, or to a member of it; () of a call, a literal
    type: str | None  # Spark's name of a literal's type
    value: Scalar  # of a literal; times in µs, dates in days; None: NULL, or JSON has no form


# -- streams ---------------------------------------------------------------------------------------


@message
class Stream:
    """A stream of topics, as each question about it names it."""

    options: Mapping[str, str]
    place: str  # in the checkpoint of its query; "": there is no query yet


@message
class StreamColumns:
    """The columns of a stream."""

    schema: str


@message
class DescribeStream(Question[StreamColumns]):
    """Which columns does a stream have?"""

    stream: Stream


@message
class StreamBounds:
    """Offsets: where the first batch begins, and where the last one ends (None: never)."""

    start: str
    ending: str | None


@message
class BoundStream(Question[StreamBounds]):
    """Where does a stream begin and end? Asked once: the checkpoint keeps the answer."""

    stream: Stream


@message
class StreamEnd:
    """The offset behind all that there is now."""

    latest: str


@message
class FindStreamEnd(Question[StreamEnd]):
    """Where does Trigger.AvailableNow end?"""

    stream: Stream


@message
class MicroBatch:
    """A micro-batch that was planned; ``PlanReads`` narrows that very plan."""

    stream: Stream
    start: str
    end: str
    plan: str  # id of the plan in the planner that made it
    snapshots: str  # for a planner that was started since


@message
class BatchFiles:
    """Files of a micro-batch."""

    part: str
    bytes: int
    where: Expression  # which of their rows


@message
class BatchTier:
    """What tasks read of a micro-batch from one tier."""

    tier: str
    bytes: int


@message
class BatchPlan:
    """What a micro-batch consists of: one part or tier at least."""

    name: str  # of what is streamed, for people
    batch: MicroBatch
    files: tuple[BatchFiles, ...]
    hot: tuple[BatchTier, ...]


@message
class NextBatch:
    """The batch that follows an offset: how far it goes, and how far it could go."""

    next: str
    latest: str
    plan: BatchPlan | None  # None: nothing lies behind the offset


@message
class FindNextBatch(Question[NextBatch]):
    """How far does the batch go that follows an offset, and what lies in it?"""

    stream: Stream
    start: str
    began: str  # where the stream begins
    ending: str | None  # where it ends
    until: str | None  # where Trigger.AvailableNow ends
    waited: float  # seconds since the last batch was begun
    columns: str


@message
class PlanBatch(Question[BatchPlan]):
    """What lies in a batch of which a query knows from its checkpoint alone?"""

    stream: Stream
    start: str
    end: str
    began: str  # where the stream begins
    columns: str


@message
class StreamMetrics:
    """Texts by name, as Spark shows the metrics of a source."""

    metrics: Mapping[str, str]


@message
class MeasureStream(Question[StreamMetrics]):
    """How far is a stream behind?"""

    stream: Stream
    at: str | None  # the offset that it has read up to
    latest: str | None  # the offset up to which it could read


# -- the plan of a query ---------------------------------------------------------------------------


@message
class Aggregate:
    """An aggregate over all rows of a table."""

    function: str
    column: str | None  # None: a literal that is not NULL


@message
class ColdRead:
    """Files that a query reads: of a cold table, or of a part of a micro-batch."""

    namespace: str
    name: str  # of the table, or of the part
    batch: MicroBatch | None
    filters: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]  # nothing else is asked of the rows; (): all is


@message
class HotRead:
    """Rows that a query reads by tasks: of a hot table, or of a tier of a micro-batch."""

    namespace: str
    name: str  # of the table, or of the tier
    batch: MicroBatch | None
    columns: str
    filters: tuple[Expression, ...]


@message
class TableFiles:
    """Files of one table."""

    root: str  # the table's directory, as Spark names it
    paths: tuple[str, ...]  # below it, as the Delta log has them
    sizes: tuple[int, ...]
    times: tuple[int, ...]  # ms since the epoch


@message
class ColdPlan:
    """What a ``ColdRead`` reads."""

    values: tuple[int | None, ...] | None  # of the aggregates, if the log knows all; dates in days
    tables: tuple[TableFiles, ...]  # (): nothing is read
    bytes: int


@message
class PythonFunction:
    """What Spark's Python workers run."""

    function: bytes  # pickled, with the columns that it gives
    python: str  # the interpreter
    version: str  # of Python


@message
class TaskPlan:
    """Tasks for Spark's Python workers. Pickles hold the settings: no plan shows them."""

    function: PythonFunction
    tasks: tuple[bytes, ...]  # what the function is called with, pickled
    rows: int  # so many more rows without a column need no reading


@message
class ReadPlans:
    """The plans of a query's reads, in the order in which they were asked for."""

    cold: tuple[ColdPlan, ...]
    hot: tuple[TaskPlan, ...]


@message
class PlanReads(Question[ReadPlans]):
    """What do the scans of a query read?"""

    cold: tuple[ColdRead, ...]
    hot: tuple[HotRead, ...]
    parallelism: int  # so many tasks run at once


# -- writes ----------------------------------------------------------------------------------------


@message
class Sink:
    """A topic that rows are written to."""

    name: str
    schema: str  # columns that rows may have
    payload: int  # so many of them, from the first, are the payload's
    defaults: Mapping[str, str]  # SQL expressions, by column
    omitted: tuple[str, ...]  # columns that are left out if they are NULL in each row
    ignored: tuple[str, ...]  # columns that are left out


@message
class DescribeSink(Question[Sink]):
    """Which columns may rows have that are written to a topic?"""

    namespace: str
    name: str


@message
class CreateTopic(Question[Done]):
    """Make a topic."""

    namespace: str
    name: str
    columns: str
    properties: Mapping[str, str]


@message
class DropTopic(Question[Done]):
    """Delete a topic."""

    namespace: str
    name: str


@message
class WriteState:
    """What is known of a write without a name of its own."""

    version: int  # the last that was decided; -1: none
    following: Mapping[str, int]  # sequence ids, by partition
    producer: str


@message
class Write:
    """A write that was opened, as later questions name it."""

    options: Mapping[str, str]
    topic: str | None
    app: str  # name of the write
    place: str | None  # the topic that it writes to; None: rows name theirs
    named: bool  # ``app`` is the user's or the query's
    version: int  # number of the batch; a stream's batches have epochs
    state: WriteState | None


@message
class OpenedWrite:
    """A write, and what its tasks run."""

    write: Write
    function: PythonFunction


@message
class OpenWrite(Question[OpenedWrite]):
    """Begin to write rows."""

    topic: str | None  # the table; None: the options or the rows name one
    options: Mapping[str, str]
    columns: str
    query: str  # names the write, where the options do not
    streaming: bool


@message
class Sending:
    """The tasks that send what a write has staged."""

    tasks: TaskPlan | None  # None: nothing is to be sent
    columns: str


@message
class CommitWrite(Question[Sending]):
    """Decide what is sent: all rows are staged."""

    write: Write
    epoch: int | None  # of a stream's batch
    messages: tuple[bytes, ...]  # of the tasks, pickled


@message
class ConfirmWrite(Question[Done]):
    """Note that all was sent."""

    write: Write
    epoch: int | None


@message
class AbortWrite(Question[Done]):
    """Drop what is staged: the write has failed."""

    write: Write
    decided: bool  # its commit was asked for, and may go on
    messages: tuple[bytes, ...]
