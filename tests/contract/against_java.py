"""What the Java client reads from a topic is what each tier gives: how that is checked."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from offloader.config import Config
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Topic
from reader.model.columns import METADATA_NAMES
from reader.pulsar.admin import AdminClient
from testbed.admin import Admin
from testbed.oracle import Json, Oracle
from tests.contract.java import java_rows, metadata_of, raw_value, without_order
from tests.contract.rows import Key, Row, keyed, plain, query_rows, rows_of
from tests.contract.stream.following import Follower
from tests.support.conversions import InThreadJobs

HOT = ("bookkeeper", "query", "stream", "broker")
"""Tiers; "query" forces none, nor does "stream": in small batches."""

STRAY = "chunked message with chunks missing"


def check(
    rows: Mapping[Key, Row],
    java: Mapping[Key, Json],
    topic: str,
    payload: Callable[[Json], Row] = raw_value,
) -> None:
    """Row by row; every column is compared."""
    assert sorted(rows) == sorted(java)
    for key, message in java.items():
        ours = dict(rows[key])
        expected = metadata_of(message, topic)
        assert set(expected) == set(METADATA_NAMES)
        expected |= payload(message)
        expected = {name: without_order(plain(value)) for name, value in expected.items()}
        ours = {name: without_order(value) for name, value in ours.items()}
        assert ours.keys() == expected.keys()
        wrong = {n: (ours[n], expected[n]) for n in ours if ours[n] != expected[n]}
        assert not wrong, (key, wrong)


def split_strays(rows: dict[Key, Row]) -> tuple[dict[Key, Row], dict[Key, Row]]:
    """(rows, those of chunks that the Java client does not show)."""
    strays = {key: row for key, row in rows.items() if row["__error"] == STRAY}
    return {key: row for key, row in rows.items() if key not in strays}, strays


def through_the_broker(config: Config) -> Config:
    """The offloader of a cluster whose bookies nobody reaches: to tables of its own."""
    own = {"source": "broker", "subscription": "through-the-broker"}
    return config.model_copy(
        update={
            "offload": config.offload.model_copy(update=own),
            "storage": config.storage.model_copy(update={"uri": f"{config.storage.uri}/broker"}),
        }
    )


def offload_in_thread(config: Config, topic: str) -> None:
    """Every sealed ledger of the topic, without Spark."""
    with AdminClient(config.pulsar) as admin, Clients(config, admin=admin) as clients:
        jobs = InThreadJobs(clients)
        offloader = TopicOffloader(clients, config.offload, jobs)
        while offloader.turn(Topic.parse(topic), now=True).more:
            pass


@dataclass(frozen=True)
class Contract:
    """The Java client on the one side, every tier on the other.

    `through_broker`: as `config`, for tables that were read through the broker alone. `streams`:
    those of `config`, which go on from one comparison to the next.
    """

    oracle: Oracle
    admin: Admin
    config: Config
    through_broker: Config
    streams: Follower

    def holds(
        self,
        topic: str,
        payload: Callable[[Json], Row] = raw_value,
        *,
        strays: Iterable[Key] = (),
        tiers: Sequence[str] = (*HOT, "parquet"),
        schema: Json | None = None,
        offloaded_twice: bool = True,
    ) -> dict[Key, Json]:
        """Compare all tiers; for "parquet" the topic is sealed and offloaded first, twice: from
        the bookies, and through the broker (unless `offloaded_twice` is false: the same entries
        make the same rows); what a stream has read before is then read again.

        `schema`: what the Java client reads by.
        """
        self.admin.wait_recovered(topic)  # until then nobody can read it
        java = java_rows(self.oracle, topic, schema)
        failed: list[Exception] = []
        for tier in tiers:
            try:
                streamed = "stream" in tiers
                for read in self._read(topic, tier, streamed=streamed, twice=offloaded_twice):
                    rows, found = split_strays(read)
                    check(rows, java, topic, payload)
                    assert sorted(found) == sorted(strays)
            except Exception as error:  # noqa: BLE001 - the other tiers are of interest, too
                error.add_note(f"tier: {tier}")
                failed.append(error)
        if failed:
            raise ExceptionGroup("tiers that differ from the Java client", failed)
        return java

    def offload(self, topic: str) -> None:
        """Offload every sealed ledger, without Spark."""
        offload_in_thread(self.config, topic)

    def _read(
        self, topic: str, tier: str, *, streamed: bool, twice: bool
    ) -> Iterator[dict[Key, Row]]:
        if tier == "query":
            yield query_rows(self.config, topic)
            return
        if tier == "stream":
            yield from self._streamed(topic)
            return
        if tier == "parquet":
            self.admin.seal(topic)
            self.offload(topic)
            if twice:
                offload_in_thread(self.through_broker, topic)
                yield rows_of(self.through_broker, topic, tier)
            yield query_rows(self.config, topic)
            if streamed:
                yield from self._streamed(topic)
        yield rows_of(self.config, topic, tier)

    def _streamed(self, topic: str) -> Iterator[dict[Key, Row]]:
        rows = self.streams.rows(topic)
        yield keyed(rows.to_pylist())
        yield keyed(self.streams.limited(topic, len(rows) // 3 + 1).to_pylist())
