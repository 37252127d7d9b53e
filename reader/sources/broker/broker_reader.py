"""Messages through ``pulsar-client``.

The broker hides markers and aborted transactions and serves what its own tiered storage holds.
``reader.model.columns.BROKER_NULLS`` names what the client cannot give. It also takes a message
without a key and one with an empty key for the same; rows say NULL for both.

**Nothing is missing.** The client skips entries without a word (markers, aborted transactions,
chunks; but also what it takes for corrupt), and says that no message is left where a topic was just
loaded. So each entry of the range is accounted for: by a message, or by the broker, which is asked
over REST what an entry is of which none came (``entry_account``). A batch is complete
once a message of a later entry came, or as many as its header says. Else reading goes on until
``pulsar.timeout``, and fails.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.decode import Messages
from reader.errors import (
    ConfigurationError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from reader.model import Partition, Position
from reader.pulsar import AdminClient, current_token, identity_files, token_supplier
from reader.rotation import FileState
from reader.sources.broker.broker_messages import Found, messages_of, publish_time
from reader.sources.broker.entry_account import EntryAccount

__all__ = ["BrokerReader"]

_At = tuple[int, int, float]
"""Ledger, entry and batch index of a message; infinity: the last of its batch."""

_STRICT_MS = 1000
"""So long a strict read waits for a message that the broker says is there."""
_MOVING_SECONDS = 0.2
_ATTEMPTS = 4
"""Within ``pulsar.timeout``: a broker that unloads a topic may leave a request unanswered."""
QUEUE = 64
"""Messages that the client reads ahead. It decompresses them first, so each may take Pulsar's
largest message (5 MiB), whatever it takes on the wire: 320 MiB. Fewer cost speed, unless messages
are in batches: where a broker takes 2 ms to send more, single ones come with 1,000 at 21,000/s,
with 64 at 11,000, with 32 at 5,200, with 16 at 3,300."""
BATCH_BYTES = 8 << 20
_BATCH_MESSAGES = 20_000
"""A batch of rows ends with an entry, unless that has many times as much."""
_MANY = 4
_MOST_AHEAD = 1_000
_MOST_AHEAD_BYTES = 64 << 20
"""Messages that are kept while the rest of a chunked one is looked for behind the range."""


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
        self._timeout = config.timeout.total_seconds()  # asked for with each message
        self._clock = clock
        self._sleep = sleep
        self._admin = admin
        self._process = os.getpid()
        self._client: Any = None
        self._files: tuple[FileState, ...] = ()  # that the client was made with
        self._reader: Any = None
        self._partition: Partition | None = None
        self._account: EntryAccount
        self._at = Position(-1, -1)
        self._held: deque[Any] = deque()  # read already, but behind what was asked for

    def close(self) -> None:
        """Disconnect."""
        if self._process != os.getpid():
            return
        if self._client is not None:
            import pulsar

            # What was read is complete: an error while disconnecting loses nothing.
            with suppress(pulsar.PulsarException):
                self._client.close()
        self._client = self._reader = self._partition = None
        self._held.clear()

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
        self._reader = self._partition = None
        self._held.clear()

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
        rescue: bool = True,
    ) -> Iterator[tuple[int | None, Messages]]:
        """Messages of entries first..last (inclusive, one ledger), and each batch's last entry id.

        None where the batch ends within an entry, of which the rest follows.

        ``start``: where messages of this range may begin; default: in it. ``strict``: raise
        UnsupportedError where an entry gives no message, after what lies before it. It may be a
        marker, or aborted; but it may be a chunk of a message that began earlier, or damaged, and
        of these the client says nothing. ``rescue``: see ``messages_of``.
        ``publish_range`` is in µs, inclusive. Raises UnavailableError when the broker goes silent,
        or the client leaves out an entry that has messages, and NotFoundError when the ledger was
        trimmed before the end was reached: never fewer messages.
        """
        import pulsar  # heavy, and only where this tier is used

        try:
            if partition != self._partition or self._at >= first:
                self._open(partition, start or first)
                self._account = EntryAccount(self._admin, partition)
            account = self._account
            account.begin()
            make = partial(
                messages_of, partition=partition, wanted=columns, keys=keys, rescue=rescue
            )
            reached = yield from self._messages(
                account, partition, first, last, start or first, make, publish_range, strict
            )
        except pulsar.PulsarException as error:
            self.close()
            raise _translate(pulsar, error, self._config, partition) from error
        except BaseException:
            self.close()  # its position is not known any more
            raise
        account.require_ledger(first.ledger)
        if reached != last.entry:
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
                receiver_queue_size=QUEUE,
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
        return self._clock() + self._timeout

    def _messages(
        self,
        account: EntryAccount,
        partition: Partition,
        first: Position,
        last: Position,
        start: Position,
        make: Callable[[Sequence[Found]], Messages],
        publish_range: tuple[int | None, int | None],
        strict: bool,
    ) -> Generator[tuple[int | None, Messages], None, int]:
        """The last entry up to which all are accounted for."""
        import pulsar

        ranged = publish_range != (None, None)
        batch: list[Found] = []
        size = repeated = 0
        within = False  # rows of an entry were given, and not the last of it
        # All of the entry before, whatever messages its batch has.
        before: _At = (first.ledger, first.entry - 1, math.inf)
        deadline = self._deadline()
        while True:
            try:
                message = self._next(account, partition, before, last, strict)
            except pulsar.Timeout:
                if not strict and _complete(account, before, last):
                    break
                if self._clock() > deadline:
                    raise
                self.close()
                self._open(partition, start)  # what was read already comes again, and is passed by
                continue
            if message is None:
                break
            message_id = message.message_id()
            at = _position(message_id)
            if at <= before:
                self._at = Position(*at[:2])
                continue  # before the range, or resent after a reconnect
            beyond = at[:2] > (last.ledger, last.entry)
            skipped = range(before[1] + 1, (last.entry + 1) if beyond else at[1])
            if (beyond or skipped) and strict:
                self._held.appendleft(message)
                break
            if skipped:
                account.skip(last.ledger, skipped)
            if beyond:
                _tell(account, message, message_id)
                self._held.appendleft(message)
                before = (last.ledger, last.entry, math.inf)
                break
            self._at = Position(*at[:2])
            same = at[:2] == before[:2]
            if not same:
                repeated = _repeated_bytes(message)
            most = _MANY if same else 1
            if size >= most * BATCH_BYTES or len(batch) >= most * _BATCH_MESSAGES:
                within = same or not account.is_settled()
                yield None if within else before[1], make(batch)
                batch, size = [], 0
            before = at
            _tell(account, message, message_id)
            deadline = self._deadline()
            if not ranged or _within(publish_range, message):
                batch.append(Found.of(message, at))
                size += batch[-1].size + repeated
        if not strict:
            self._require_settled(account)
        elif not self._held and not _whole(account, before):
            raise UnsupportedError(
                f"the broker's client stops within the batch {before[0]}:{before[1]} of {partition}"
            )
        if batch or within:
            yield before[1], make(batch)
        return before[1] if strict else last.entry

    def _require_settled(self, account: EntryAccount) -> None:
        """Raises UnavailableError where nobody says what an entry is, of which no message came.

        Looks ahead for a chunked message that it may belong to.
        """
        seen = size = 0
        while not account.is_settled():
            if seen == len(self._held):
                full = seen >= _MOST_AHEAD or size >= _MOST_AHEAD_BYTES
                if full or not self._patiently(self._reader.has_message_available):
                    if account.is_settled(again=True):
                        return
                    raise UnavailableError(
                        f"neither the broker nor its client says what {account.skipped} is",
                        hint="it is damaged, or a chunk of a compressed message that is not "
                        "complete; BookKeeper's reader knows",
                    )
                self._held.append(self._reader.read_next(1000 * _attempt_seconds(self._config)))
            held = self._held[seen]
            message_id = held.message_id()
            _tell(account, held, message_id)
            size += Found.of(held, _position(message_id)).size
            seen += 1

    def _next(
        self,
        account: EntryAccount,
        partition: Partition,
        before: _At,
        last: Position,
        strict: bool,
    ) -> Any:
        """The next message; None where there is no other, or where ``strict`` and none comes.

        A topic that was just loaded says that there is none until it has looked for transactions.
        """
        if self._held:
            return self._held.popleft()
        if before[2] == -1 and Position(*before[:2]) >= last:
            return None  # no batch, so no more of it
        available = self._patiently(self._reader.has_message_available)
        if not strict:
            if not available and _complete(account, before, last):
                return None
            return self._reader.read_next(1000 * _attempt_seconds(self._config))
        if not available:
            if Position(*before[:2]) >= last:
                return None
            self._admin.ledgers(partition)  # waits for transactions
            if not self._patiently(self._reader.has_message_available):
                return None
        import pulsar

        try:
            return self._reader.read_next(_STRICT_MS)
        except pulsar.Timeout:
            return None  # a chunk, say, of which the client gives no message


def _complete(account: EntryAccount, before: _At, last: Position) -> bool:
    """Whether, by what the broker says of the entries, no row is left up to ``last``."""
    account.is_settled()  # what lies before is asked about first
    rest = range(before[1] + 1, last.entry + 1)
    return _whole(account, before) and all(
        account.needs_no_row(last.ledger, entry) for entry in rest
    )


def _whole(account: EntryAccount, at: _At) -> bool:
    """Whether the message at ``at`` is the last of its entry."""
    ledger, entry, index = at
    return not 0 <= index < math.inf or account.is_last_message(ledger, entry, int(index))


def _position(message_id: Any) -> tuple[int, int, int]:
    return message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()


def _within(publish_range: tuple[int | None, int | None], message: Any) -> bool:
    """Whether the message lies in the range, for all that is known."""
    low, high = publish_range
    time = publish_time(message)
    return time is None or ((low is None or low <= time) and (high is None or time <= high))


def _repeated_bytes(message: Any) -> int:
    """What a message repeats of its entry."""
    try:
        return len(message.producer_name())
    except UnicodeDecodeError:
        return 0


def _tell(account: EntryAccount, message: Any, at: Any) -> None:
    """That the message came, if it is a chunked one. ``at``: its id."""
    if at.batch_index() >= 0 or not account.follows_chunks:
        return
    # Of a chunked message this is "(ledger,entry,…);(ledger,entry,…)": its first chunk and its
    # last. The client has no other way to say it.
    if ";" not in (text := str(at)):
        return
    ledger, entry, *_ = text.lstrip("(").split(",")
    producer = ""
    with suppress(UnicodeDecodeError):
        producer = message.producer_name()
    account.message_came((at.ledger_id(), at.entry_id()), (int(ledger), int(entry)), producer)


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
