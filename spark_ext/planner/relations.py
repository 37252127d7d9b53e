"""What a name of the catalog stands for: a topic's snapshot as a view, its hot rows as a table.

orders                   a view of one snapshot, taken when it is asked for
orders$compacted         what a compacted reader sees of it: the latest value of each key
orders$tiers=broker      the same with one tier forced; also orders$compacted$tiers=broker
orders$hot@TOKEN         the hot rows of the snapshot that the token holds, and the table's
                         ciphertext, decrypted
orders$cold@VERSION      the rows of one version of its table (``cold_tables``)
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

import pyarrow as pa

from reader.clients import Clients
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Segment, Topic
from reader.model.column_names import free_name
from reader.plan import Snapshot, from_token, take_snapshot, to_token, token_size
from reader.pulsar import AdminClient
from reader.table import TopicTable, require_readable
from spark_ext.ddl import columns_ddl, grown, null, quoted
from spark_ext.planner.cold_tables import NOT_ENCRYPTED_SQL, ColdTables, TableVersion, described
from spark_ext.planner.format_options import read_options
from spark_ext.planner.protocol import (
    ColdPlan,
    ColdRead,
    HotRead,
    LoadFormat,
    LoadRelation,
    LoadVersion,
    Relation,
    SnapshotTable,
    TaskPlan,
    TopicView,
)
from spark_ext.planner.topic_names import (
    COLD,
    COMPACTED,
    DEFAULT_NAMESPACE,
    HOT,
    TIERS_SUFFIX,
    TOPIC_PROPERTY,
    plain_topic,
)

_KEPT_SNAPSHOTS = 64
_KEPT_SEGMENTS = 1 << 18
"""Of all of them together: some 100 MiB. The newest is kept however many it has."""
_KEPT_TOKEN_BYTES = 64 << 10
"""Of a token from elsewhere: some 4,000 segments. A longer one is read again each time."""


class Relations:
    """Names of the catalog. Thread-safe. ``clients_of``: those of a configuration."""

    def __init__(self, clients_of: Callable[[str | None], Clients]) -> None:
        self._clients = clients_of
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str | None, str], Snapshot] = OrderedDict()
        self.cold = ColdTables()

    # -- namespaces ----------------------------------------------------------------------------

    def namespaces(self, config_path: str | None) -> list[str]:
        """All ``tenant/namespace`` that the client may see.

        Only a superuser may ask for tenants: others see those of ``pulsar.namespaces`` that are
        there and open to them.
        """
        clients = self._clients(config_path)
        admin, named = clients.admin, clients.settings.pulsar.namespaces
        try:
            tenants = admin.tenants()
        except ConfigurationError as error:
            if named:
                return [one for one in named if _visible(admin, one)]
            raise ConfigurationError(
                "no permission to list all tenants",
                hint="name the namespaces to show in pulsar.namespaces; "
                "topics can be queried by their full names all the same",
            ) from error
        found = []
        for tenant in tenants:
            try:
                found += admin.namespaces(tenant)
            except (ConfigurationError, NotFoundError):
                continue  # another's tenant, or deleted since it was listed
        return found

    def require_namespace(self, config_path: str | None, namespace: str) -> None:
        """Raise NotFoundError for a namespace that does not exist, or that is hidden."""
        if not _visible(self._clients(config_path).admin, namespace):
            raise NotFoundError(f"namespace {namespace} does not exist")

    def topics(self, config_path: str | None, namespace: str) -> list[str]:
        """The names of a namespace's topics. Raises NotFoundError."""
        tenant, separator, name = (namespace or DEFAULT_NAMESPACE).partition("/")
        if not separator:
            raise NotFoundError(
                f"namespace {namespace} does not exist", hint="write tenant/namespace"
            )
        admin = self._clients(config_path).admin
        return [topic.name for topic in admin.topics(tenant, name)]

    # -- relations -----------------------------------------------------------------------------

    def load(self, config_path: str | None, question: LoadRelation) -> Relation:
        """Return a view, or one of the tables that a view's text names."""
        namespace, name = question.namespace, question.name
        clients = self._clients(config_path)
        local, mark, _ = name.rpartition(COLD)
        if mark:
            return Relation(None, self.cold.describe(clients, local, *_cold_name(namespace, name)))
        local, mark, token = name.rpartition(HOT)
        if mark:
            topic = plain_topic(namespace, local)
            snapshot = self._snapshot(clients, config_path, topic, token)
            return Relation(None, _hot_table(local, token, snapshot))
        local, _, tiers = name.partition(TIERS_SUFFIX)
        topic = plain_topic(namespace, local.removesuffix(COMPACTED))
        view = self._view(
            config_path,
            question.catalog,
            topic,
            tiers=tiers or None,
            compacted=local.endswith(COMPACTED),
        )
        return Relation(view, None)

    def load_format(self, config_path: str | None, question: LoadFormat) -> TopicView:
        """Return the view that ``format("pulsar")`` reads. Raises ConfigurationError."""
        topic, tiers = read_options(question.options, config_path)
        return self._view(config_path, question.catalog, topic, tiers=tiers)

    def _view(
        self,
        config_path: str | None,
        catalog: str,
        topic: Topic,
        *,
        tiers: str | None,
        compacted: bool = False,
    ) -> TopicView:
        """Take a snapshot of a topic, and return it as a view."""
        clients = self._clients(config_path)
        snapshot = take_snapshot(clients, topic, tiers=tiers, compacted=compacted)
        snapshot.log_note()
        token = to_token(snapshot)
        self._keep(config_path, token, snapshot)
        tables = [_hot_table(topic.name, token, snapshot)] if _has_hot(snapshot) else []
        version = None
        if snapshot.table is not None:
            version = self.cold.keep(clients, snapshot.table)
            tables.append(described(topic.name, snapshot.table))
        text = view_text(snapshot, catalog, token, version)
        if compacted:
            keeps = clients.settings.query.compaction_retain_null_key
            keeps = clients.admin.compaction_retains_null_keys() if keeps is None else keeps
            text = compacted_text(text, snapshot.columns, keeps)
        schema = columns_ddl(snapshot.columns)
        namespace = f"{topic.tenant}/{topic.namespace}"
        return TopicView(namespace, text, schema, _properties(snapshot), tuple(tables))

    def load_version(self, config_path: str | None, question: LoadVersion) -> SnapshotTable:
        """Return the cold table of a version of a topic's table, whatever Pulsar still has.

        Raises NotFoundError where there is none.
        """
        clients = self._clients(config_path)
        topic = plain_topic(question.namespace, question.name)
        clients.admin.require_consume(topic)
        if question.version is not None:
            table = TopicTable.open(clients.storage, topic, question.version)
        else:
            assert question.at is not None
            table = TopicTable.open_at(clients.storage, topic, question.at)
        if table is None:
            raise NotFoundError(
                f"topic {topic} has no table yet, so no versions",
                hint=f"run: pulsar-lake offload --once {topic}",
            )
        require_readable(table)
        self.cold.keep(clients, table)
        return described(question.name, table)

    # -- reads -----------------------------------------------------------------------------------

    def hot_scan(self, config_path: str | None, read: HotRead, parallelism: int) -> TaskPlan:
        """Return the tasks of a scan of a hot table."""
        from spark_ext.planner.scans import hot_scan  # pyspark is loaded when first needed

        clients = self._clients(config_path)
        local, _, token = read.name.rpartition(HOT)
        topic = plain_topic(read.namespace, local)
        snapshot = self._snapshot(clients, config_path, topic, token)
        return hot_scan(clients, replace(snapshot, version=None), read, parallelism)

    def cold_plan(self, config_path: str | None, read: ColdRead) -> ColdPlan:
        """Return what a scan of a cold table reads."""
        topic, version = _cold_name(read.namespace, read.name)
        return self.cold.plan(self._clients(config_path), topic, version, read)

    # -- kept ----------------------------------------------------------------------------------

    def _keep(self, config_path: str | None, token: str, snapshot: Snapshot) -> None:
        hot = replace(snapshot, cold=(), unreadable=(), table=None)  # as it comes out of a token
        with self._lock:
            self._kept.pop((config_path, token), None)
            self._kept[config_path, token] = hot
            while len(self._kept) > 1 and self._too_many():
                self._kept.popitem(last=False)

    def _too_many(self) -> bool:
        segments = sum(len(one.hot) for one in self._kept.values())
        return len(self._kept) > _KEPT_SNAPSHOTS or segments > _KEPT_SEGMENTS

    def _snapshot(
        self, clients: Clients, config_path: str | None, topic: Topic, token: str
    ) -> Snapshot:
        with self._lock:
            known = self._kept.get((config_path, token))
        if known is not None and known.topic == topic:
            clients.admin.require_consume(topic)  # at each plan: it may have been revoked
            return known
        found = from_token(clients.admin, topic, token)
        if token_size(token) <= _KEPT_TOKEN_BYTES:
            self._keep(config_path, token, found)
        return found


def _visible(admin: AdminClient, namespace: str) -> bool:
    tenant, _, name = namespace.partition("/")
    try:
        admin.partitioned_topics(tenant, name)
    except (ConfigurationError, NotFoundError):
        return False
    return True


def _cold_name(namespace: str, name: str) -> tuple[Topic, TableVersion]:
    local, _, version = name.rpartition(COLD)
    return plain_topic(namespace, local), TableVersion.parse(version)


def view_text(snapshot: Snapshot, catalog: str, token: str, version: TableVersion | None) -> str:
    """The query that unites a snapshot's cold and hot rows, with the same columns in both.

    ``version``: of the topic's table; None where it has no part in the answer.
    """
    names = ", ".join(quoted(name) for name in snapshot.columns.names)
    topic = snapshot.topic
    namespace = f"{topic.tenant}/{topic.namespace}"
    halves = []
    if version is not None:
        cold = _cold_columns(snapshot.columns, snapshot.cold_columns)
        half = f"SELECT {cold} FROM {quoted(catalog, namespace, f'{topic.name}{COLD}{version}')}"
        conditions = [NOT_ENCRYPTED_SQL] if snapshot.ciphertext else []
        conditions += [
            f"NOT (__partition = {one.partition.index} AND __ledgerId >= {one.first} "
            f"AND __ledgerId < {one.before})"
            for one in snapshot.compacted
            if one.first < one.before
        ]
        halves.append(" WHERE ".join([half, " AND ".join(conditions)] if conditions else [half]))
    if _has_hot(snapshot):
        table = quoted(catalog, namespace, f"{topic.name}{HOT}{token}")
        halves.append(f"SELECT {names} FROM {table}")
    if not halves:
        nothing = _cold_columns(snapshot.columns, pa.schema([]))
        halves.append(f"SELECT {nothing} WHERE false")
    return " UNION ALL ".join(halves)


def compacted_text(text: str, columns: pa.Schema, retain_null_keys: bool) -> str:
    """Return the query that leaves the latest message of each key, unless it is a tombstone.

    As Pulsar's compaction, partition by partition; ``retain_null_keys``: the broker's
    ``topicCompactionRetainNullKey``. A row without a key that has an error stays: the key may be
    what cannot be shown. Rows without a key are ranked alone, by their position, so that one scan
    gives all rows.
    """
    names = ", ".join(quoted(name) for name in columns.names)
    rank = quoted(free_name("__rank", columns.names))
    alone = "IF(__key IS NULL, struct(__ledgerId, __entryId, __batchIndex), NULL)"
    known = "" if retain_null_keys else " WHERE __key IS NOT NULL OR __error IS NOT NULL"
    ranked = (
        f"SELECT *, row_number() OVER (PARTITION BY __partition, __key, {alone} "
        f"ORDER BY __ledgerId DESC, __entryId DESC, __batchIndex DESC) AS {rank} "
        f"FROM ({text}){known}"
    )
    return (
        f"SELECT {names} FROM ({ranked}) "
        f"WHERE {rank} = 1 AND (__key IS NULL OR __tombstone IS NOT TRUE)"
    )


def _cold_columns(columns: pa.Schema, have: pa.Schema) -> str:
    """The table's columns; NULL for those, and members of structs, that only hot rows have."""
    found = []
    for field in columns:
        name = quoted(field.name)
        if field.name not in have.names:
            found.append(f"{null(field.type)} AS {name}")
        elif (text := grown(name, have.field(field.name).type, field.type)) == name:
            found.append(name)
        else:
            found.append(f"{text} AS {name}")
    return ", ".join(found)


def _hot_table(local: str, token: str, snapshot: Snapshot) -> SnapshotTable:
    rows, size = sum(one.entries for one in snapshot.hot), _known_bytes(snapshot.hot)
    schema = columns_ddl(snapshot.columns)
    return SnapshotTable(f"{local}{HOT}{token}", f"{local} (hot)", False, schema, rows, size)


def _has_hot(snapshot: Snapshot) -> bool:
    """Return whether a view of the snapshot names its hot table."""
    return bool(snapshot.hot or snapshot.ciphertext or snapshot.compacted)


def _known_bytes(segments: Sequence[Segment]) -> int | None:
    return sum(one.bytes for one in segments) if all(one.bytes for one in segments) else None


def _properties(snapshot: Snapshot) -> dict[str, str]:
    version = "none yet" if snapshot.version is None else str(snapshot.version)
    return {
        TOPIC_PROPERTY: snapshot.topic.full_name,
        "pulsar.table.version": version,
        "pulsar.hot.segments": str(len(snapshot.hot)),
    }
