"""The plans of the topics in a Spark query, taken from Spark's own plan of that query.

The analysed plan has a view of the catalog for each topic that is named; the physical plan says
what is left of it: a scan of hot rows, whose table's name holds the snapshot and which knows its
columns and filters, and a Parquet scan, whose table's name holds the version and which knows the
files that are left. Nothing is asked of the query's text, and no second snapshot is taken. The
snapshot's name holds what is read: hot segments that are empty or that only wait are not in these
plans.
"""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reader.clients import Clients, process_clients
from reader.config import ReadConfig
from reader.model import Topic
from reader.plan import Plan, Predicate, Snapshot, from_token, make_plan
from reader.table import TopicTable
from spark_ext.planner.cold_tables import TableVersion
from spark_ext.planner.encoding import decode
from spark_ext.planner.predicates import predicates_of
from spark_ext.planner.protocol import Expression, HotRead
from spark_ext.planner.topic_names import COLD, HOT, TOPIC_PROPERTY
from spark_ext.session.builder import catalog_settings

_SHIM = "io.pulsarlake.spark.catalog.PulsarCatalog"
_SKIPPED = ("ReusedExchangeExec", "ReusedSubqueryExec")


@dataclass(frozen=True, slots=True)
class _HotLeaf:
    token: str
    columns: tuple[str, ...]
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class _ColdLeaf:
    """``files``: the paths of those that are left to read; None: nobody has asked yet."""

    table: str
    columns: tuple[str, ...]
    predicates: tuple[Predicate, ...]
    files: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class _View:
    """A topic that the query names: the names of its cold and hot tables, where it has any.

    ``catalog``: the name of the catalog that it is in, whose settings decide how it is read.
    """

    catalog: str
    topic: Topic
    table: str | None
    token: str | None

    @property
    def version(self) -> TableVersion | None:
        """Of the topic's table."""
        if self.table is None:
            return None
        return TableVersion.parse(self.table.rpartition(COLD)[2].rstrip("`"))


def prepared(spark: Any, query: str) -> tuple[Any, str]:
    """Spark's QueryExecution of a query that is not run, not even a command; its plan as text."""
    jvm, session = spark._jvm, spark._jsparkSession  # noqa: SLF001 - pyspark has no other way
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session)
    execution = _execution(spark, session.sessionState().sqlParser().parsePlan(query))
    text = jvm.org.apache.spark.sql.api.python.PythonSQLUtils.explainString(execution, "formatted")
    return execution, str(text)


def _execution(spark: Any, plan: Any) -> Any:
    """Spark's QueryExecution of a logical plan, whose commands are not run."""
    jvm, session = spark._jvm, spark._jsparkSession  # noqa: SLF001 - pyspark has no other way
    skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return session.sessionState().executePlan(plan, skip)


def plans_of(clients: Clients, spark: Any, execution: Any) -> list[Plan]:
    """A plan for each different read of a topic in the query, in the order of Spark's plan.

    ``spark``: the session; ``execution``: the JVM's QueryExecution. ``clients``: of topics whose
    catalog has the same settings; others are planned by those of their catalog. Raises what
    planning the query raises.
    """
    found: dict[Any, Plan] = {}
    _add_plans(found, clients, spark, execution)
    for query in command_queries(execution.analyzed()):
        if any(True for _ in _views(spark, query)):
            _add_plans(found, clients, spark, _execution(spark, query))
    return list(found.values())


def _add_plans(found: dict[Any, Plan], clients: Clients, spark: Any, execution: Any) -> None:
    views = list(dict.fromkeys(_views(spark, execution.analyzed())))
    seen: set[_View] = set()
    for hot, cold in _pairs(_leaves(spark, execution.executedPlan()), views):
        fitting = [one for one in views if _matches(one, hot, cold)]
        # Cold rows alone: rather of a reference that has no hot ones ($tiers=parquet).
        view = next((one for one in fitting if hot or one.token is None), next(iter(fitting), None))
        if view is None:
            continue  # a Delta table that is read by itself
        seen.add(view)
        if (view, hot, cold) not in found:
            found[view, hot, cold] = _plan(clients, spark, view, hot, cold)
    for view in views:
        if view not in seen:
            found[view, None, None] = _plan(clients, spark, view, None, None)


def _matches(view: _View, hot: _HotLeaf | None, cold: _ColdLeaf | None) -> bool:
    if hot is not None:
        return view.token == hot.token
    return cold is not None and view.table == cold.table


def catalog_clients(clients: Clients, spark: Any, catalog: str) -> Clients:
    """``clients``, if the session's catalog has their settings; otherwise those of its settings.

    Raises ConfigurationError for settings that cannot be read.
    """
    settings = ReadConfig.load(catalog_settings(spark, catalog))
    return clients if settings == clients.settings else process_clients(settings)


def _plan(
    clients: Clients, spark: Any, view: _View, hot: _HotLeaf | None, cold: _ColdLeaf | None
) -> Plan:
    clients = catalog_clients(clients, spark, view.catalog)
    leaf = hot or cold
    columns = leaf.columns if leaf is not None else ()
    predicates = leaf.predicates if leaf is not None else ()
    if view.token is not None:
        snapshot = from_token(clients.admin, view.topic, view.token)
    else:
        snapshot = _cold_snapshot(clients, view)
    # As the tasks are planned (HotTable.java): entries are cut into splits by it.
    parallelism = int(spark.sparkContext.defaultParallelism)
    plan = make_plan(clients, snapshot, columns, predicates, parallelism=parallelism)
    return plan.restricted(hot=hot is not None, files=cold.files if cold is not None else ())


def _cold_snapshot(clients: Clients, view: _View) -> Snapshot:
    """Of a topic without hot rows, or without any."""
    table = None
    if view.version is not None:
        table = TopicTable.open(clients.storage, view.topic, view.version.version)
    fields = table.payload_schema if table is not None else pa.schema([])
    return Snapshot(
        topic=view.topic,
        uri=table.uri if table is not None else "",
        version=table.version if table is not None else None,
        fields=fields,
        cold_columns=table.schema if table is not None else pa.schema([]),
        schemas=(),
        hot=(),
        table=table,
    )


def _pairs(
    leaves: Iterator[_HotLeaf | _ColdLeaf], views: list[_View]
) -> Iterator[tuple[_HotLeaf | None, _ColdLeaf | None]]:
    """The two halves of one reference: in a view's text, hot rows follow the cold ones."""
    before: _ColdLeaf | None = None
    for leaf in leaves:
        if isinstance(leaf, _ColdLeaf):
            if before is not None:
                yield None, before
            before = leaf
            continue
        halves = any(
            before is not None and (one.token, one.table) == (leaf.token, before.table)
            for one in views
        )
        if before is not None and not halves:
            yield None, before
        yield leaf, before if halves else None
        before = None
    if before is not None:
        yield None, before


# -- the analysed plan -----------------------------------------------------------------------------


def _views(spark: Any, root: Any) -> Iterator[_View]:
    for node in _walk(root):
        if _name(node) != "View":
            continue
        catalog = _some(node.desc().identifier().catalog())
        topic = _some(node.desc().properties().get(TOPIC_PROPERTY))
        if (
            catalog is None
            or topic is None
            or spark.conf.get(f"spark.sql.catalog.{catalog}", None) != _SHIM
        ):
            continue
        table, token = None, None
        for leaf in _walk(node.child()):
            if _name(leaf) == "LogicalRelation" and table is None:
                files = _files_of(leaf.relation())
                table = str(files.table()) if files is not None else None
            elif _name(leaf) == "DataSourceV2Relation" and token is None:
                token = _token(str(leaf.name()))
        yield _View(catalog, Topic.parse(topic), table, token)


def _token(name: str) -> str | None:
    _, mark, token = name.rpartition(HOT)
    return token.rstrip("`") if mark else None


# -- the physical plan -----------------------------------------------------------------------------


def _leaves(spark: Any, root: Any) -> Iterator[_HotLeaf | _ColdLeaf]:
    for node in _walk(root):
        match _name(node):
            case "BatchScanExec":
                request = spark._jvm.io.pulsarlake.spark.reads.PlanLeaves.hot(node.scan())
                if request is not None:
                    yield _hot(decode(HotRead, json.loads(request)))
            case "FileSourceScanExec":
                found = _cold(spark, node)
                if found is not None:
                    yield found


def _hot(read: HotRead) -> _HotLeaf:
    return _HotLeaf(
        token=_token(read.name) or "",
        columns=tuple(field["name"] for field in json.loads(read.columns)["fields"]),
        predicates=tuple(predicates_of(read.filters)),
    )


def _cold(spark: Any, node: Any) -> _ColdLeaf | None:
    location = _files_of(node.relation())
    if location is None:
        return None
    filters = spark._jvm.io.pulsarlake.spark.reads.PlanLeaves.filters(node.dataFilters())
    return _ColdLeaf(
        table=str(location.table()),
        columns=tuple(node.requiredSchema().fieldNames()),
        predicates=tuple(predicates_of(decode(Expression, one) for one in json.loads(filters))),
        files=frozenset(json.loads(location.paths())) if location.asked() else None,
    )


def _files_of(relation: Any) -> Any:
    """The files of a cold table's relation (``ColdFiles.java``); None for any other."""
    if not _is(relation, "HadoopFsRelation") or _name(relation.location()) != "ColdFiles":
        return None
    return relation.location()


# -- Scala's collections and trees through py4j ----------------------------------------------------


def _walk(root: Any) -> Iterator[Any]:
    """A plan's nodes, a node before its children; subqueries' after all others."""
    later = deque([root])
    while later:
        stack = [later.popleft()]
        while stack:
            node = stack.pop()
            kind = _name(node)
            if kind in _SKIPPED:
                continue
            yield node
            later.extend(_each(node.subqueries()))
            if kind == "AdaptiveSparkPlanExec":
                stack.append(node.initialPlan())
            elif kind == "InMemoryTableScanExec":
                stack.append(node.relation().cachedPlan())
            stack.extend(reversed(list(_each(node.children()))))


def command_queries(root: Any) -> Iterator[Any]:
    """The queries of the commands in a logical plan, which Spark plans when it runs the commands.

    The query of a view is among them, which is planned when a query reads the view.

    Such a command (CREATE … AS, CACHE TABLE) has no children, once analysed, but inner ones, which
    are only the subqueries of all other nodes. A command that was run already (``CommandResult``)
    reads nothing more.
    """
    for node in _walk(root):
        if _name(node) == "CommandResult":
            continue
        planned = list(_each(node.subqueries()))
        yield from (one for one in _each(node.innerChildren()) if one not in planned)


def _each(items: Any) -> Iterator[Any]:
    iterator = items.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _some(option: Any) -> Any:
    return option.get() if option.isDefined() else None


def _is(value: Any, name: str) -> bool:
    """Whether it is of the class, or of one (Delta's have no name) that extends it."""
    kind = value.getClass()
    while kind is not None and kind.getSimpleName() != name:
        kind = kind.getSuperclass()
    return kind is not None


def _name(value: Any) -> str:
    return str(value.getClass().getSimpleName())
