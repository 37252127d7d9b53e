"""The topics of the corpus in one namespace: published, sealed and offloaded all at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from offloader.config import Config
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.config import EncryptionConfig
from reader.model import Topic
from testbed.admin import Admin
from testbed.closing import Closing
from testbed.oracle import Json, Oracle
from testbed.tiered import TieredStorage
from tests.contract.corpus import Kind, Place
from tests.contract.corpus.comparison import expected_rows
from tests.contract.corpus.topics.encryption import KEY_KINDS
from tests.contract.java import java_rows
from tests.contract.rows import Key, Row
from tests.contract.tiered.moved import move_all
from tests.support.conversions import InThreadJobs

T = TypeVar("T")
Outcomes = dict[str, Any]
"""By a kind's name: what was read of its topic, or the exception."""

Change = Callable[[Config], Config]
"""Settings as a reader or an offloader has them."""

_AT_ONCE = 6


def unchanged(config: Config) -> Config:
    return config


@dataclass
class Published:
    """One published kind.

    java: what the Java client reads of its topic.
    expected: all columns of all of its rows.
    """

    kind: Kind
    place: Place
    java: dict[Key, Json] = field(default_factory=dict)
    expected: dict[Key, Row] = field(default_factory=dict)
    parts: int = 0


class World(Closing):
    """The published kinds. All of them are in one namespace.

    configs: settings by the name that a kind has of its own.
    private: private keys by name, which the settings "keyed" and "stored" have.
    """

    def __init__(
        self,
        namespace: str,
        kinds: Sequence[Kind],
        config: Config,
        oracle: Oracle,
        admin: Admin,
        client: Any,
        folder: Path,
    ) -> None:
        self._opened = ExitStack()
        self._pool = self._opened.enter_context(ThreadPoolExecutor(_AT_ONCE))
        self._admin, self._oracle = admin, oracle
        self.namespace = namespace
        pairs = {kind: oracle.make_keys(kind) for kind in KEY_KINDS}
        public = {kind: public for kind, (public, _) in pairs.items()}
        self.private = {kind: private for kind, (_, private) in pairs.items()}
        self.configs = {"plain": config, **_keyed(config, folder, self.private)}
        self.published = {
            kind.name: Published(
                kind, Place(f"persistent://{namespace}/{kind.name}", oracle, client, admin, public)
            )
            for kind in kinds
        }
        admin.set_schema_compatibility(namespace, "ALWAYS_COMPATIBLE")
        self.failures: dict[str, Exception] = {}
        self._holds: set[str] = set()

    def close(self) -> None:
        self._opened.close()

    def topic(self, kind: Kind) -> str:
        return self.published[kind.name].place.topic

    @property
    def kinds(self) -> list[Kind]:
        return [one.kind for one in self.published.values()]

    def publish(self) -> None:
        """Publish all parts of all kinds; the last parts stay in open ledgers."""
        running: dict[str, Iterator[None]] = {}
        for name, one in self.published.items():
            running[name] = one.kind.publish(one.place)

        def raise_if_stopped(kind: Kind) -> bool:
            one = self.published[kind.name]
            if not one.parts and kind.partitions:
                self._admin.create_topic(one.place.topic, kind.partitions)
            elif one.parts:
                self._admin.seal(one.place.topic)
            one.parts += 1
            more = next(running[kind.name], self) is None
            assert more or kind.halves is (one.parts > 1), "halves"
            return more

        going_on = self.kinds
        while going_on:
            done = self.each(going_on, raise_if_stopped)
            self._note(done)
            going_on = [kind for kind in going_on if done[kind.name] is True]

    def expect(self) -> None:
        """Read by the Java client what each topic has."""

        def read(kind: Kind) -> None:
            one = self.published[kind.name]
            self._admin.wait_recovered(one.place.topic)  # until then it cannot be read
            keys = None if kind.config == "plain" else self.private
            one.java = java_rows(self._oracle, one.place.topic, kind.schema, keys)
            one.expected = expected_rows(kind, one.place, one.java)

        self._note(self.each(self.kinds, read))

    def seal(self) -> None:
        """Close the open ledgers of all topics."""

        self._note(self.each(self.kinds, lambda kind: self._admin.seal(self.topic(kind))))

    def offload(self, kinds: Iterable[Kind], of: Change = unchanged) -> None:
        """Offload all sealed ledgers, without Spark."""
        self._holds |= {of(config).offload.subscription for config in self.configs.values()}
        with ExitStack() as opened:
            offloaders = {}
            for name, config in self.configs.items():
                clients = opened.enter_context(Clients(of(config)))
                jobs = InThreadJobs(clients)
                offloaders[name] = TopicOffloader(clients, of(config).offload, jobs)

            def offload(kind: Kind) -> None:
                topic = Topic.parse(self.topic(kind))
                while offloaders[kind.config].turn(topic, now=True).more:
                    pass

            self._note(self.each(kinds, offload))

    def move(self, tiered: TieredStorage) -> None:
        """Let Pulsar's own tiered storage take all ledgers, of which no bookie has any then.

        No subscription knows of our tables any more.
        """

        def forget(kind: Kind) -> None:
            for partition in self._admin.partitions(self.topic(kind)):
                # Readers that have just ended may have theirs for a moment.
                for name in self._holds.intersection(self._admin.subscriptions(partition)):
                    self._admin.delete_subscription(partition, name)

        self._note(self.each(self.kinds, forget))
        move_all(self.configs["plain"], tiered, [self.topic(kind) for kind in self.kinds])
        # Until then the broker answers no reader.
        self._note(self.each(self.kinds, lambda kind: self._admin.wait_recovered(self.topic(kind))))

    def each(self, kinds: Iterable[Kind], do: Callable[[Kind], T]) -> Outcomes:
        """Do something with each kind, several at once, and return what came of it."""

        def done(kind: Kind) -> T | Exception:
            try:
                return do(kind)
            except Exception as error:  # noqa: BLE001 - one kind's failure is that kind's
                return error

        some = list(kinds)
        names = [kind.name for kind in some]
        return dict(zip(names, self._pool.map(done, some), strict=True))

    def _note(self, done: Mapping[str, Any]) -> None:
        for name, result in done.items():
            if isinstance(result, Exception):
                self.failures.setdefault(name, result)


def elsewhere(name: str, **offload: Any) -> Change:
    """Return the settings of another offloader, with tables of its own."""

    def change(config: Config) -> Config:
        offloading = config.offload.model_copy(update={"subscription": name, **offload})
        storage = config.storage.model_copy(update={"uri": f"{config.storage.uri}/{name}"})
        return config.model_copy(update={"offload": offloading, "storage": storage})

    return change


def _keyed(config: Config, folder: Path, keys: Mapping[str, str]) -> dict[str, Config]:
    files = {kind: folder / f"{kind}.pem" for kind in keys}
    for kind, private in keys.items():
        files[kind].write_text(private)
    return {
        name: config.model_copy(
            update={"encryption": EncryptionConfig(keys=files, store_plaintext=stored)}
        )
        for name, stored in (("keyed", False), ("stored", True))
    }
