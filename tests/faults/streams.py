"""Numbered messages to one topic at a steady rate, and which of them the broker has taken.

The topic has deduplication on, so that a producer that sends again after a broker's death makes no
second message: what has to be in the table is each number once.
"""

import json
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pulsar

from testbed.publish import BYTES, json_schema, quiet_client

_TICK = 0.05
_FIELDS = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
_RECORD = {"type": "record", "name": "Numbered", "fields": _FIELDS}


@dataclass(frozen=True, slots=True)
class Kind:
    """A topic of the run. ``batch``: messages in one; ``rate``: messages a second."""

    name: str
    partitions: int
    batch: int
    rate: float
    json: bool

    @property
    def number(self) -> str:
        """The message's number in SQL."""
        return "id" if self.json else "CAST(substr(CAST(value AS STRING), 1, 12) AS BIGINT)"


class Stream:
    """Publishes in a thread of its own from ``start`` to ``stop``. Numbers begin at 0."""

    def __init__(self, url: str, topic: str, kind: Kind) -> None:
        self.topic = topic
        self.kind = kind
        self.sent = 0
        self.refused: list[str] = []
        self._url = url
        self._acked = np.zeros(1 << 20, dtype=np.bool_)
        self._count = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"publish {kind.name}")

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Send no more, and wait until the broker has taken everything."""
        self._over.set()
        self._thread.join(timeout)
        assert self._done.is_set() or self._thread.is_alive(), f"{self.topic}: its producer failed"
        assert not self._thread.is_alive(), f"{self.topic}: {self.sent - self._count} not taken"

    def acked(self) -> npt.NDArray[np.int64]:
        """The numbers that the broker has taken by now, ascending."""
        with self._lock:
            return np.flatnonzero(self._acked[: self.sent]).astype(np.int64)

    def _run(self) -> None:
        with quiet_client(self._url, operation_timeout_seconds=300) as client:
            producer = client.create_producer(
                self.topic,
                producer_name=f"numbers-{self.kind.name}",
                schema=json_schema(_RECORD) if self.kind.json else BYTES,
                send_timeout_millis=0,
                block_if_queue_full=True,
                max_pending_messages=5_000,
                batching_enabled=self.kind.batch > 0,
                batching_max_messages=max(2, self.kind.batch),
                batching_max_publish_delay_ms=100,
            )
            owed, before = 0.0, time.monotonic()
            while not self._over.wait(_TICK):
                # After a pause it goes on at its rate: more than a second is not made up for.
                now = time.monotonic()
                owed = min(owed + (now - before) * self.kind.rate, self.kind.rate)
                before = now
                while owed >= 1:
                    self._send(producer)
                    owed -= 1
            producer.flush()
            self._done.set()

    def _send(self, producer: Any) -> None:
        number = self.sent
        with self._lock:
            if number == len(self._acked):
                self._acked = np.concatenate([self._acked, np.zeros_like(self._acked)])
            self.sent += 1
        filler = "x" * (number % 97)
        if self.kind.json:
            payload = json.dumps({"id": number, "text": filler}).encode()
        else:
            payload = b"%012d%s" % (number, filler.encode())

        def taken(result: pulsar.Result, _: object) -> None:
            with self._lock:
                if result == pulsar.Result.Ok:
                    self._acked[number] = True
                    self._count += 1
                else:
                    self.refused.append(f"{number}: {result}")

        producer.send_async(payload, taken, partition_key=f"k{number % 50}")
