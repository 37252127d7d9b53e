"""Which part of the planner answers which question."""

from collections.abc import Callable
from threading import Lock

from reader.clients import Clients, process_clients
from reader.errors import PulsarLakeError
from spark_ext.planner import protocol as ask
from spark_ext.planner.protocol import ColdPlan, Question, ReadPlans, TaskPlan
from spark_ext.planner.relations import Relations
from spark_ext.planner.sinks import Sinks
from spark_ext.planner.streams import Streams
from spark_ext.session.handoff import load_settings

_loading = Lock()


def _clients_of(config: str | None) -> Clients:
    return process_clients(load_settings(config))


class Planner:
    """Answers questions. Thread-safe. ``clients_of``: those of a configuration."""

    def __init__(self, clients_of: Callable[[str | None], Clients] = _clients_of) -> None:
        self._relations = Relations(clients_of)
        self._streams = Streams(clients_of, self._relations.cold)
        self._sinks = Sinks(clients_of)

    def answer(self, config: str | None, question: Question[object]) -> object:
        """Return the answer to a question of a catalog with these settings."""
        load_pyspark(question)
        match question:
            case ask.ListNamespaces():
                return ask.Names(tuple(self._relations.namespaces(config)))
            case ask.FindNamespace():
                self._relations.require_namespace(config, question.namespace)
                return ask.Done()
            case ask.ListTopics():
                return ask.Names(tuple(self._relations.topics(config, question.namespace)))
            case ask.LoadRelation():
                return self._relations.load(config, question)
            case ask.LoadFormat():
                return self._relations.load_format(config, question)
            case ask.LoadVersion():
                return self._relations.load_version(config, question)
            case ask.PlanReads():
                cold = tuple(self._cold_plan(config, one) for one in question.cold)
                hot = tuple(self._scan(config, one, question.parallelism) for one in question.hot)
                return ReadPlans(cold, hot)
            case ask.DescribeStream():
                return self._streams.describe(config, question.stream)
            case ask.BoundStream():
                return self._streams.bounds(config, question.stream)
            case ask.FindStreamEnd():
                return self._streams.end(config, question.stream)
            case ask.FindNextBatch():
                return self._streams.next(config, question)
            case ask.PlanBatch():
                return self._streams.plan(config, question)
            case ask.MeasureStream():
                return self._streams.metrics(config, question)
            case ask.DescribeSink():
                return self._sinks.describe(config, question.namespace, question.name)
            case ask.CreateTopic():
                return self._sinks.create(config, question)
            case ask.DropTopic():
                return self._sinks.drop(config, question.namespace, question.name)
            case ask.OpenWrite():
                return self._sinks.open(config, question)
            case ask.CommitWrite():
                return self._sinks.commit(config, question)
            case ask.ConfirmWrite():
                return self._sinks.sent(config, question.write, question.epoch)
            case ask.AbortWrite():
                return self._sinks.abort(config, question)
        raise PulsarLakeError(f"The planner has no answer to {type(question).__name__}")

    def _cold_plan(self, config: str | None, read: ask.ColdRead) -> ColdPlan:
        if read.batch is None:
            return self._relations.cold_plan(config, read)
        return self._streams.cold_plan(config, read.batch, read)

    def _scan(self, config: str | None, read: ask.HotRead, parallelism: int) -> TaskPlan:
        if read.batch is None:
            return self._relations.hot_scan(config, read, parallelism)
        return self._streams.hot_scan(config, read.batch, read, parallelism)


def load_pyspark(question: Question[object]) -> None:
    """Import what a question needs of pyspark, in one thread at a time.

    Its modules import each other in circles: two threads that begin in different places fail.
    """
    match question:
        case ask.PlanReads(hot=(_, *_)):
            with _loading:
                import spark_ext.planner.scans
        case ask.CreateTopic() | ask.OpenWrite() | ask.CommitWrite():
            with _loading:
                import spark_ext.planner.sink_columns
                import spark_ext.planner.sink_scans  # noqa: F401
