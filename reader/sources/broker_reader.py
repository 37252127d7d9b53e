"""Messages through ``pulsar-client``.

The broker hides markers and aborted transactions and serves what its own tiered storage holds.
``reader.model.columns.BROKER_NULLS`` names what the client cannot give. It also takes a message
without a key and one with an empty key for the same; rows say NULL for both.
"""

from __future__ import annotations

import base64
import math
import os
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.decode import Messages
from reader.errors import (
    ConfigurationError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from reader.kernels.byte_spans import ByteSpans
from reader.model import Partition, Position
from reader.model.columns import METADATA
from reader.pulsar import AdminClient, current_token, identity_files, token_supplier
from reader.rotation import FileState

__all__ = ["BrokerReader"]

_Found = tuple[Any, tuple[int, int, int]]
"""A message and its ledger, entry and batch index."""

_STRICT_MS = 1000
"""So long a strict read waits for a message that the broker says is there."""
_MOVING_SECONDS = 0.2
_ATTEMPTS = 4
"""Within ``pulsar.timeout``: a broker that unloads a topic may leave a request unanswered."""
_BATCH_BYTES = 8 << 20
_BATCH_MESSAGES = 20_000


class BrokerReader(Closing):
    """Messages of entries through ``pulsar-client``; a context manager.

    It goes on where it is, from one range of entries to the next: the client puts a chunked
    message together only where one reader sees all of its chunks. Once a token's file or a
    certificate was rotated, the next topic is read by a new connection. In a forked child it stays
    connected, as it is its parent's. ``clock`` and ``sleep``: seconds, monotonic.
    """

    def __init__(
        self,
        config: PulsarConfig,
        admin: AdminClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._config = config
        self._clock = clock
        self._sleep = sleep
        self._admin = admin
        self._process = os.getpid()
        self._client: Any = None
        self._files: tuple[FileState, ...] = ()  # that the client was made with
        self._reader: Any = None
        self._partition: Partition | None = None
        self._at = Position(-1, -1)
        self._held: Any = None  # read already, but behind what was asked for

    def close(self) -> None:
        """Disconnect."""
        if self._process != os.getpid():
            return
        if self._client is not None:
            import pulsar

            # What was read is complete: an error while disconnecting loses nothing.
            with suppress(pulsar.PulsarException):
                self._client.close()
        self._client = self._reader = self._held = self._partition = None

    def release(self) -> None:
        """Release the topic, which may be deleted then; the connection stays for the next."""
        if self._process != os.getpid():
            return
        if self._reader is not None:
            import pulsar

            try:
                self._reader.close()
            except pulsar.PulsarException:
                self.close()
        self._reader = self._held = self._partition = None

    def read(
        self,
        partition: Partition,
        first: Position,
        last: Position,
        *,
        start: Position | None = None,
        columns: Collection[str],
        keys: bool = False,
        publish_range: tuple[int | None, int | None] = (None, None),
        strict: bool = False,
    ) -> Iterator[tuple[int, Messages]]:
        """Messages of entries first..last (inclusive, one ledger), and each batch's last entry id.

        ``start``: where messages of this range may begin; default: in it. ``strict``: raise
        UnsupportedError where an entry gives no message, after what lies before it. It may be a
        marker, or aborted; but it may be a chunk of a message that began earlier, or damaged, and
        of these the client says nothing.
        Batches end at entry boundaries. ``publish_range`` is in µs, inclusive. Raises
        UnavailableError when the broker goes silent, and NotFoundError, after what it did deliver,
        when the ledger was trimmed before the end was reached: never fewer messages.
        """
        import pulsar  # heavy, and only where this tier is used

        try:
            if partition != self._partition or self._at >= first:
                self._open(partition, start or first)
            make = partial(_columns, partition=partition, wanted=columns, keys=keys)
            reached = yield from self._messages(
                partition, first, last, start or first, make, publish_range, strict
            )
        except pulsar.PulsarException as error:
            self.close()
            raise _translate(pulsar, error, self._config, partition) from error
        except BaseException:
            self.close()  # its position is not known any more
            raise
        if first.ledger not in self._admin.ledger_ids(partition):
            raise NotFoundError(f"ledger {first.ledger} of {partition} has been trimmed")
        if strict and reached != last.entry:
            raise UnsupportedError(
                f"the broker's client gives nothing for entry {last.ledger}:{reached + 1} "
                f"of {partition}"
            )

    def _open(self, partition: Partition, start: Position) -> None:
        import pulsar

        self.release()
        # A token by OAuth2 does not count: the client is given the newest when it reconnects.
        files = identity_files(self._config)
        if files != self._files:
            self.close()
        if self._client is None:
            self._files, self._client = files, _client(pulsar, self._config)
        self._reader = self._patiently(
            lambda: self._client.create_reader(
                partition.full_name,
                pulsar.MessageId(partition.index, start.ledger, start.entry, -1),
                start_message_id_inclusive=True,
                receiver_queue_size=1000,
                reader_name="pulsar-lake",
            )
        )
        self._partition = partition
        self._at = Position(start.ledger, start.entry - 1)

    def _patiently(self, call: Callable[[], Any]) -> Any:
        """``call()``, again for ``pulsar.timeout`` while the topic is on its way to a broker."""
        import pulsar

        deadline = self._deadline()
        while True:
            try:
                return call()
            except pulsar.PulsarException as error:
                moving = isinstance(_translate(pulsar, error, self._config, ""), UnavailableError)
                if not moving or self._clock() > deadline:
                    raise
            self._sleep(_MOVING_SECONDS)

    def _deadline(self) -> float:
        return self._clock() + self._config.timeout.total_seconds()

    def _messages(
        self,
        partition: Partition,
        first: Position,
        last: Position,
        start: Position,
        make: Callable[[list[_Found]], Messages],
        publish_range: tuple[int | None, int | None],
        strict: bool,
    ) -> Generator[tuple[int, Messages], None, int]:
        """The last entry that gave a message, or the one before the first."""
        import pulsar

        low = -(1 << 63) if publish_range[0] is None else publish_range[0]
        high = (1 << 63) - 1 if publish_range[1] is None else publish_range[1]
        batch: list[_Found] = []
        size = 0
        # All of the entry before, whatever messages its batch has.
        before: tuple[int, int, float] = (first.ledger, first.entry - 1, math.inf)
        deadline = self._deadline()
        # Without a message left the broker says so; with one left, silence is an error and
        # never the end: messages would be missing.
        while True:
            complete = Position(*before[:2]) >= last
            try:
                message = self._next(partition, complete, strict)
            except pulsar.Timeout:
                if self._clock() > deadline:
                    raise
                self.close()
                self._open(partition, start)  # what was read already comes again, and is passed by
                continue
            if message is None:
                break
            message_id = message.message_id()
            at = (message_id.ledger_id(), message_id.entry_id(), message_id.batch_index())
            if at <= before:
                self._at = Position(*at[:2])
                continue  # before the range, or resent after a reconnect
            beyond = at[:2] > (last.ledger, last.entry)
            gap = strict and at[:2] != before[:2] and at[1] != before[1] + 1
            if beyond or gap:
                self._held = message
                break
            self._at = Position(*at[:2])
            full = size >= _BATCH_BYTES or len(batch) >= _BATCH_MESSAGES
            if full and at[:2] != before[:2]:
                yield before[1], make(batch)
                batch, size = [], 0
            before = at
            deadline = self._deadline()
            if low <= message.publish_timestamp() * 1000 <= high:
                batch.append((message, at))
                size += len(message.data())
        if batch:
            yield before[1], make(batch)
        return before[1]

    def _next(self, partition: Partition, complete: bool, strict: bool) -> Any:
        """The next message; None where there is no other, or where ``strict`` and none comes.

        A "no" before the end is asked again: a topic that was just loaded says so until it has
        looked for transactions. The admin client waits for that.
        """
        if self._held is not None:
            held, self._held = self._held, None
            return held
        if not self._patiently(self._reader.has_message_available):
            if complete:
                return None
            self._admin.ledgers(partition)
            if not self._patiently(self._reader.has_message_available):
                return None
        if not strict:
            return self._reader.read_next(1000 * _attempt_seconds(self._config))
        import pulsar

        try:
            return self._reader.read_next(_STRICT_MS)
        except pulsar.Timeout:
            return None  # a chunk, say, of which the client gives no message


def _attempt_seconds(config: PulsarConfig) -> int:
    return max(1, int(config.timeout.total_seconds() / _ATTEMPTS))


def _client(pulsar: Any, config: PulsarConfig) -> Any:
    trust, certificate, key = (
        str(path) if path else None
        for path in (
            config.tls_trust_certs_file,
            config.tls_certificate_file,
            config.tls_key_file,
        )
    )
    identity = None
    if current_token(config):
        identity = pulsar.AuthenticationToken(token_supplier(config))
    elif certificate and key:
        identity = pulsar.AuthenticationTLS(certificate, key)
    return pulsar.Client(
        config.service_url,
        authentication=identity,
        operation_timeout_seconds=_attempt_seconds(config),
        tls_trust_certs_file_path=trust,
        tls_certificate_file_path=certificate,
        tls_private_key_file_path=key,
        tls_validate_hostname=config.tls_verify_hostname,
        # Its own threads log: a Python logger would call back into a finalizing interpreter.
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
    )


def _translate(pulsar: Any, error: Exception, config: PulsarConfig, what: object) -> Exception:
    text = str(error)
    if isinstance(error, pulsar.AuthorizationError | pulsar.AuthenticationError):
        return ConfigurationError(
            f"no permission to read {what}", hint=f"check the identity in [pulsar]: {text}"
        )
    if isinstance(error, pulsar.TopicNotFound):
        return NotFoundError(f"topic {what} does not exist")
    return UnavailableError(
        f"the broker at {config.service_url} does not serve {what}: {text}",
        hint="check pulsar.service_url and that the broker runs",
    )


def _columns(
    batch: list[_Found], *, partition: Partition, wanted: Collection[str], keys: bool
) -> Messages:
    found = [message for message, _ in batch]
    versions = [message.schema_version() or "" for message in found]
    schema_versions = np.array([_version(text) for text in versions], dtype=np.int64)
    rescued: dict[int, tuple[bytes, str]] = {}

    def texts(name: str, what: str) -> list[Any]:
        """The client fails on text that is not UTF-8: the message says so, and stays."""
        values = []
        for row, message in enumerate(found):
            try:
                values.append(getattr(message, name)() or None)
            except UnicodeDecodeError:
                values.append(None)
                rescued[row] = message.data(), f"{what} is not UTF-8"
        return values

    make: dict[str, Any] = {
        "__partition": lambda: [partition.index] * len(found),
        "__ledgerId": lambda: [at[0] for _, at in batch],
        "__entryId": lambda: [at[1] for _, at in batch],
        "__batchIndex": lambda: [at[2] for _, at in batch],
        "__key": lambda: texts("partition_key", "key"),
        "__orderingKey": lambda: [
            None if key is None else key.encode() for key in texts("ordering_key", "ordering key")
        ],
        "__messageProperties": lambda: [
            list((one or {}).items()) for one in texts("properties", "a property")
        ],
        "__publishTime": lambda: [m.publish_timestamp() * 1000 for m in found],
        "__eventTime": lambda: [m.event_timestamp() * 1000 or None for m in found],
        "__producerName": lambda: texts("producer_name", "producer name"),
        "__tombstone": lambda: [m.has_null_value() or not m.data() for m in found],
        "__schemaVersion": lambda: [None if v < 0 else v for v in schema_versions.tolist()],
    }
    columns = {
        name: pa.array(make[name](), METADATA.field(name).type)
        if name in make
        else pa.nulls(len(found), METADATA.field(name).type)
        for name in wanted
    }
    payload = pa.array([None if m.has_null_value() else m.data() for m in found], pa.large_binary())
    return Messages(
        columns=columns,
        payload=ByteSpans.of(payload),
        schema_versions=schema_versions,
        rescued=rescued,
        keys=pa.array(map(_key, texts("partition_key", "key")), pa.large_binary())
        if keys
        else None,
    )


def _key(text: str | None) -> bytes | None:
    """The key's bytes. Whether its text is base64 the client does not say: what can be, is."""
    try:
        return base64.b64decode(text, validate=True) if text else None
    except ValueError:
        return str(text).encode()


def _version(value: str | bytes) -> int:
    raw = value if isinstance(value, bytes) else value.encode("latin-1")
    return int.from_bytes(raw, "big", signed=True) if raw else -1
