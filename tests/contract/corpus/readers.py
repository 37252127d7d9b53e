"""What reads all topics of the corpus in one go. One topic's failure is an outcome of its own."""

import threading
import warnings
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa

from reader import open_topic
from reader.clients import Clients
from reader.model import Topic
from reader.storage import open_storage
from testbed.closing import Closing
from tests.contract.corpus import Kind
from tests.contract.corpus.world import Change, Outcomes, World, unchanged
from tests.contract.rows import tier_table
from tests.contract.stream.following import Follower
from tests.support.iceberg import follower, iceberg_config, iceberg_table


class Readers(Closing):
    """Readers without Spark; streams go on from one state to the next."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world, self._folder = world, folder
        self._opened = ExitStack()
        self._followers = {
            name: self._opened.enter_context(closing(Follower(config)))
            for name, config in world.configs.items()
        }

    def close(self) -> None:
        self._opened.close()

    def tier(self, kinds: Iterable[Kind], tier: str, of: Change = unchanged) -> Outcomes:
        """One tier alone, which has all rows."""
        with ExitStack() as opened:
            clients = {
                name: opened.enter_context(Clients(of(config)))
                for name, config in self._world.configs.items()
            }

            def read(kind: Kind) -> pa.Table:
                topic = self._world.topic(kind)
                if kind.config != "plain" and tier == "parquet":  # the table has ciphertext
                    with open_topic(of(self._world.configs[kind.config]), topic) as scanned:
                        return scanned.scan(tiers=tier).read_all()
                return tier_table(clients[kind.config], topic, tier)

            return self._world.each([kind for kind in kinds if tier not in kind.unread], read)

    def query(self, kinds: Iterable[Kind], of: Change = unchanged) -> Outcomes:
        """A scan, which chooses the tiers."""

        def read(kind: Kind) -> pa.Table:
            config = of(self._world.configs[kind.config])
            with open_topic(config, self._world.topic(kind)) as opened:
                return opened.scan().read_all()

        return self._world.each(kinds, read)

    def stream(self, kinds: Iterable[Kind]) -> Outcomes:
        """One stream, which reads again what it has read before."""

        def read(kind: Kind) -> pa.Table:
            return self._followers[kind.config].rows(self._world.topic(kind))

        return self._world.each(kinds, read)

    def new_stream(self, kinds: Iterable[Kind]) -> Outcomes:
        """A stream from the beginning, in three batches or more."""

        def read(kind: Kind) -> pa.Table:
            most = kind.rows // 3 + 1
            return self._followers[kind.config].limited(self._world.topic(kind), most)

        return self._world.each(kinds, read)

    def iceberg(self, kinds: Iterable[Kind]) -> Outcomes:
        """Iceberg tables that follow the topics' tables, read by PyIceberg alone."""
        plain = self._world.configs["plain"]
        storage, config = open_storage(plain.storage), iceberg_config("sql", self._folder)
        following = follower(storage, config)
        one_at_a_time = threading.Lock()

        def read(kind: Kind) -> pa.Table:
            topic = Topic.parse(self._world.topic(kind))
            with one_at_a_time:
                following.follow(topic)
            return iceberg_table(storage, config, topic).scan().to_arrow()

        with warnings.catch_warnings(action="ignore"):  # of what PyIceberg calls in pyarrow
            return self._world.each(filter(_has_a_plain_table, kinds), read)


def _has_a_plain_table(kind: Kind) -> bool:
    return kind.config == "plain" and "parquet" not in kind.unread
