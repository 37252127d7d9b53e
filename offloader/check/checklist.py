"""Which checks there are, in the order in which they are shown, and what each needs."""

import os
import time
from datetime import timedelta
from functools import partial

from offloader.check import machine_check
from offloader.check.admin_check import check_admin
from offloader.check.bookie_check import check_bookies, targets
from offloader.check.broker_check import check_broker
from offloader.check.clock_check import check_clocks
from offloader.check.iceberg_check import check_iceberg
from offloader.check.outcome import Check, Finding, Waiting
from offloader.check.storage_check import StoredAt, check_storage
from offloader.check.tiered_check import OffloadedLedgers, check_place, offloaded_ledgers
from offloader.check.topic_check import FoundTopics, check_role, check_topics, find
from offloader.config import Config
from reader.clients import Clients
from reader.closing import Closing
from reader.config import TieredConfig
from spark_ext.session import jars

_PATIENCE = 3
"""A client's timeout is this part of a check's: so its own error, which says more, comes first."""


class Checklist(Closing):
    """The checks of one configuration, to be run once. ``seconds``: how long each may take.

    They ask with clients of their own, which are less patient than the settings say.
    """

    def __init__(self, config: Config, seconds: float) -> None:
        self._config = config
        self._seconds = seconds
        self._clients = Clients(_impatient(config, seconds / _PATIENCE))
        self._topics = FoundTopics({})
        self._offloaded: OffloadedLedgers | None = None  # asked for by the first place
        self._stored: StoredAt | None = None
        self._is_pulsar = False  # what answers at pulsar.admin_url

    def close(self) -> None:
        self._clients.close()

    def checks(self) -> tuple[Check, ...]:
        return (
            Check("admin", self._admin),
            Check("role", self._role, needs=("admin",)),
            Check("topics", self._matching, needs=("admin",), after=("role",)),
            Check("bookies", self._bookies, needs=("admin",), after=("role",)),
            Check("broker", self._broker, after=("role",)),
            Check("storage", self._storage),
            *self._iceberg_checks(),
            *self._places(),
            Check("clocks", self._clocks, after=("admin", "storage")),
            Check("java", self._java),
            Check("jars", self._jars),
            Check("space", self._space),
            Check("memory", lambda _: machine_check.check_memory(machine_check.available_memory())),
        )

    def _iceberg_checks(self) -> tuple[Check, ...]:
        """None where there are no Iceberg tables."""
        if not (self._config.iceberg.enabled and self._config.storage.uri):
            return ()
        return (Check("iceberg", self._iceberg, needs=("storage",)),)

    # Values go from one check to the next: a check begins when those before it are done.

    def _admin(self, waiting: Waiting) -> Finding:
        finding = check_admin(self._clients.admin, self._config.pulsar, waiting)
        self._is_pulsar = finding.state.passed
        return finding

    def _role(self, waiting: Waiting) -> Finding:
        self._topics = find(self._clients.admin, self._config.offload, waiting)
        return check_role(self._clients.admin, self._config.offload, self._topics, waiting)

    def _matching(self, waiting: Waiting) -> Finding:
        return check_topics(self._clients.admin, self._config.offload, self._topics, waiting)

    def _bookies(self, waiting: Waiting) -> Finding:
        pulsar = self._clients.settings.pulsar
        return check_bookies(
            targets(self._clients.admin, self._topics, waiting),
            pulsar.bookies,
            self._clients.bookie_access(),
            waiting,
            timeout=pulsar.bookie_timeout.total_seconds(),
            through_broker=self._config.offload.source == "broker",
        )

    def _broker(self, waiting: Waiting) -> Finding:
        topic = next(iter(self._topics.topics), None)
        partition = None if topic is None else self._topics.first_partition(topic)
        return check_broker(self._clients, partition, waiting)

    def _storage(self, waiting: Waiting) -> Finding:
        if not self._config.storage.uri:
            return Finding.warning(
                "storage.uri is not set: queries read Pulsar alone, and nothing can be offloaded",
                "name a directory or s3://bucket/prefix",
            )

        def remember(at: StoredAt) -> None:
            self._stored = at

        return check_storage(self._clients.storage, waiting, stored=remember)

    def _iceberg(self, waiting: Waiting) -> Finding:
        return check_iceberg(self._clients.storage, self._config.iceberg, waiting)

    def _places(self) -> list[Check]:
        """One for each section; numbered where there are several, in their order."""
        places = self._config.tiered
        return [
            Check(
                "tiered" if len(places) == 1 else f"tiered {number}",
                partial(self._place, place),
                after=("admin", "role"),
            )
            for number, place in enumerate(places, 1)
        ]

    def _place(self, place: TieredConfig, waiting: Waiting) -> Finding:
        if self._is_pulsar and self._offloaded is None:
            self._offloaded = offloaded_ledgers(self._clients.admin, self._topics, waiting)
        return check_place(place, self._config.tiered, self._offloaded or (), waiting)

    def _clocks(self, waiting: Waiting) -> Finding:
        times = {}
        if self._is_pulsar:
            waiting(self._config.pulsar.admin_url)
            before = _now_ms()
            there = self._clients.admin.date_ms()
            times["the broker"] = StoredAt(before, there, _now_ms())
        if self._stored is not None:
            times["the storage"] = self._stored
        return check_clocks(times)

    def _java(self, waiting: Waiting) -> Finding:
        return machine_check.check_java(os.environ, waiting, seconds=self._seconds / _PATIENCE)

    def _jars(self, _: Waiting) -> Finding:
        uri, spark = self._config.storage.uri, self._config.spark
        groups = jars.groups_for(uri, spark.conf, delta=spark.delta, any_storage=not uri)
        if groups:
            jars.open_folder(jars.jars_folder(), create=False)  # raises what a session would
        missing = [jar.file for jar in jars.missing_jars(groups)]
        return machine_check.check_jars(
            jars.jars_folder(), [jar.file for jar in jars.listed(groups)], missing
        )

    def _space(self, _: Waiting) -> Finding:
        found = {
            "jars and kernels": jars.cache_home(),
            "temporary files": machine_check.temporary_directory(
                self._config.spark.conf, os.environ
            ),
        }
        return machine_check.check_space(found)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _impatient(config: Config, seconds: float) -> Config:
    most = timedelta(seconds=seconds)
    pulsar = config.pulsar.model_copy(
        update={
            "timeout": min(config.pulsar.timeout, most),
            "bookie_timeout": min(config.pulsar.bookie_timeout, most),
        }
    )
    return config.model_copy(update={"pulsar": pulsar})
