"""The command line as users run it, in a process of its own, and what has to be true after."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from offloader.config import load_config
from reader.model import Partition, Topic
from reader.storage import Storage, open_storage
from reader.table import TopicTable
from testbed.admin import Admin
from testbed.publish import Message

RowId = tuple[int, int, int, int]
Start = Callable[..., "Run"]
"""As ``Run``; what it starts ends with the test."""

_MAIN = "from offloader.cli.app import main; main()"


def run_program(
    command: Sequence[str | Path], *, timeout: float, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code. The result has what it wrote, as text."""
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False, **more
    )


class Servers(Protocol):
    """Where a Pulsar is, or none: a ``Cluster``, or addresses at which nobody answers."""

    @property
    def service_url(self) -> str: ...
    @property
    def admin_url(self) -> str: ...


class Settings:
    """A settings file, and the storage that it names. ``http``, ``iceberg``, ``tiered``: those
    sections'."""

    def __init__(
        self,
        directory: Path,
        cluster: Servers,
        uri: str,
        options: Mapping[str, str] | None = None,
        *,
        pulsar: Mapping[str, Any] | None = None,
        spark: Mapping[str, Any] | None = None,
        http: Mapping[str, Any] | None = None,
        iceberg: Mapping[str, Any] | None = None,
        tiered: Sequence[Mapping[str, Any]] = (),
        **offload: Any,
    ) -> None:
        self.value: dict[str, Any] = {
            "pulsar": {
                "service_url": cluster.service_url,
                "admin_url": cluster.admin_url,
                **(pulsar or {}),
            },
            "storage": {"uri": uri, "options": dict(options or {})},
            "offload": {"grace": "0s", "interval": "1s", **offload},
            "spark": dict(spark or {"master": "local[2]"}),
            "http": {"address": "127.0.0.1:0", **(http or {})},
            "iceberg": dict(iceberg or {}),
            "tiered": list(tiered),
        }
        self.path = directory / "lake.toml"
        self.path.write_text(_toml(self.value))
        self.state = directory / "state"

    @property
    def storage(self) -> Storage:
        return open_storage(load_config(self.value).storage)


def _toml(value: Mapping[str, Any]) -> str:
    lines = []
    for section, content in value.items():
        several = isinstance(content, list)
        for keys in content if several else [content]:
            lines.append(f"[[{section}]]" if several else f"[{section}]")
            for key, inner in keys.items():
                if isinstance(inner, Mapping):
                    pairs = ", ".join(f'"{k}" = {json.dumps(v)}' for k, v in inner.items())
                    lines.append(f"{key} = {{ {pairs} }}")
                else:
                    lines.append(f"{key} = {json.dumps(inner)}")
    return "\n".join(lines) + "\n"


class Run:
    """One run of ``pulsar-lake``; ``err`` collects standard error while it goes on.

    ``clock``: a file that sets the clock of this process (``tests.faults.stepped_clock``).
    """

    def __init__(
        self, settings: Settings, *arguments: str, kill: str = "", clock: Path | None = None
    ) -> None:
        environment = os.environ | {"PULSAR_LAKE_STATE": str(settings.state)}
        program: tuple[str, ...] = ("-c", _MAIN)
        if kill:
            program = ("-m", "tests.support.steps", kill)
        if clock is not None:
            program = ("-m", "tests.faults.stepped_clock", str(clock))
        self._process = subprocess.Popen(
            [sys.executable, *program, *arguments, "--config", str(settings.path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.err = ""
        self.out = ""
        self._seen = threading.Condition()
        self._readers = [
            threading.Thread(target=self._collect, args=(name,), daemon=True)
            for name in ("out", "err")
        ]
        for reader in self._readers:
            reader.start()

    def _collect(self, name: str) -> None:
        stream = self._process.stderr if name == "err" else self._process.stdout
        assert stream is not None
        with stream:
            for line in stream:
                with self._seen:
                    setattr(self, name, getattr(self, name) + line)
                    self._seen.notify_all()

    def wait_for(self, text: str, timeout: float = 300) -> None:
        """Until ``text`` was said on standard error."""
        with self._seen:
            assert self._seen.wait_for(lambda: text in self.err, timeout), self.err

    @property
    def pid(self) -> int:
        return self._process.pid

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def terminate(self) -> None:
        """As service managers end it."""
        self._process.terminate()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """However the test went, nothing of it goes on."""
        if self.running:
            self._process.kill()
            self._process.wait(60)

    def code(self, timeout: float = 420) -> int:
        """The exit code, once it is over; -9 for a process that was killed."""
        try:
            found = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"still running:\n{self.err}") from None
        for reader in self._readers:
            reader.join(60)
        return found


def sent_ids(sent: Iterable[Message]) -> dict[RowId, bytes | None]:
    """(partition, ledger, entry, batch index) → payload: what a table must have."""
    found = {}
    for message in sent:
        assert message.message_id is not None
        ledger, entry, partition, batch = message.message_id
        found[partition, ledger, entry, batch] = message.payload
    return found


def in_table(storage: Storage, topic: Topic) -> list[tuple[RowId, Any]]:
    """Each row's id and its ``value`` column, as the newest version has them."""
    table = TopicTable.open(storage, topic)
    if table is None:
        return []
    filesystem, directory = storage.directory(topic)
    dataset = table.handle.to_pyarrow_dataset(
        filesystem=pa.fs.SubTreeFileSystem(directory, filesystem)
    )
    names = ["__partition", "__ledgerId", "__entryId", "__batchIndex", "value"]
    rows = dataset.to_table(columns=names).to_pylist()
    return [
        (
            (row["__partition"], row["__ledgerId"], row["__entryId"], row["__batchIndex"]),
            row["value"],
        )
        for row in rows
    ]


def ledgers_of(admin: Admin, topic: Topic) -> dict[int, list[int]]:
    """Partition index → the ledgers that Pulsar still has."""
    names = admin.partitions(topic.full_name)
    return {Partition.parse(name).index: admin.ledgers(name) for name in names}


@contextmanager
def starting() -> Iterator[Start]:
    """Starts ``pulsar-lake``; ends what is still running after the block."""
    runs: list[Run] = []

    def begin(settings: Settings, *arguments: str, **options: Any) -> Run:
        runs.append(Run(settings, *arguments, **options))
        return runs[-1]

    yield begin
    for run in runs:
        run.end()


def check_nothing_lost(
    storage: Storage, admin: Admin, topic: Topic, sent: Sequence[Message]
) -> int:
    """Each message is in the table exactly once, or in a ledger that Pulsar still has.

    What is in the table is what the watermarks say, no more and no less. Returns the number of
    rows in the table.
    """
    expected = sent_ids(sent)
    rows = in_table(storage, topic)
    counted = Counter(row_id for row_id, _ in rows)
    assert not [row_id for row_id, count in counted.items() if count > 1], "doubled rows"
    table = TopicTable.open(storage, topic)
    marks = {
        index: table.watermark(Partition(topic, index)) if table else -1
        for index in ledgers_of(admin, topic)
    }
    cold = {row_id for row_id in expected if row_id[1] <= marks[row_id[0]]}
    assert set(counted) == cold, "the table is not what its watermarks say"
    for row_id, value in rows:
        assert value == expected[row_id]
    there = ledgers_of(admin, topic)
    lost = [row_id for row_id in set(expected) - cold if row_id[1] not in there[row_id[0]]]
    assert not lost, "neither in the table nor in Pulsar"
    return len(rows)
