"""`Oracle`: Pulsar's official Java client, in one JVM that answers requests.

    with Oracle(cluster.service_url) as oracle:
        oracle.write(topic, [{"value": "a", "key": "k"}], {"type": "STRING"})
        rows = oracle.read(topic)

The JVM runs the sources in `java/`, which are compiled once against the server's jars. It ends
with its standard input, so also when this process dies.
"""

import base64
import itertools
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from testbed.process import Server
from testbed.publish import MessageId
from testbed.server import config
from testbed.server.classes import compiled
from testbed.server.jars import server_jars

Json = dict[str, Any]

_SOURCES = Path(__file__).with_name("java")
_LOGGING = {**config.log4j("WARN"), "appender.console.target": "SYSTEM_ERR"}


class OracleError(RuntimeError):
    """The Java client refused; the message is its stack trace."""


class Oracle(Server):
    """`with Oracle(…) as oracle:` or `start()` … `stop()`. Threads may use it side by side.

    log: where the JVM's own messages go; by default to a file that `stop()` removes.
    """

    def __init__(self, service_url: str, admin_url: str = "", *, log: Path | None = None) -> None:
        self.service_url = service_url
        self.admin_url = admin_url
        self._log = log
        self._child: subprocess.Popen[str] | None = None
        self._asking = threading.Lock()

    def start(self) -> None:
        jars = server_jars()
        classes = compiled("oracle", _SOURCES, jars)
        self._directory = Path(tempfile.mkdtemp(prefix="pulsar-lake-oracle-"))
        config.write(self._directory / "log4j2.properties", _LOGGING)
        command = config.jvm(
            jars,
            self._directory,
            "Server",
            self.service_url,
            memory="-Xmx256m -XX:MaxDirectMemorySize=256m",
            short_lived=True,
        )
        command[command.index("-cp") + 1] += f"{os.pathsep}{classes}"
        self._path = self._log or self._directory / "oracle.log"
        with self._path.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
                start_new_session=True,
            )
        assert self._child.stdout is not None
        self._numbers = itertools.count()
        self._waiting: dict[int, queue.SimpleQueue[Json]] = {}
        # A thread of its own, so that waiting for an answer can have an end.
        arguments = (self._child.stdout,)
        self._pump = threading.Thread(target=self._deliver, args=arguments, daemon=True)
        self._pump.start()

    def stop(self) -> None:
        """Transactions that are open stay open."""
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None
        child.stdin.close()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        self._pump.join()
        shutil.rmtree(self._directory, ignore_errors=True)

    def write(
        self,
        topic: str,
        messages: Sequence[Json],
        schema: Json | None = None,
        *,
        batch: int = 0,
        compression: str = "NONE",
        chunk_size: int | None = None,
        transaction: str | None = None,
        producer: str | None = None,
        encryption: Mapping[str, str] | None = None,
        hashing: str | None = None,
    ) -> list[MessageId]:
        """Send with one producer, in order; the ids.

        messages: `value` in the schema's form, and optionally `key` (None sends the client's null
            key), `key_bytes`, `ordering_key`, `properties`, `event_time`, `sequence_id`,
            `deliver_at`, `replicated_from` (as a replicator sets it), `marker_type` (as a broker
            does) and `marked`, the halves of the id of the transaction that it ends; `schema` and
            `transaction` win over those of the call. Bytes are given as `bytes`, or as base64.
        schema: `{"type": …}`, by default BYTES. AVRO and JSON have a `definition`, and AVRO takes
            values in Avro's JSON encoding; KEY_VALUE has `key`, `value` (schemas again) and
            `encoding`; PROTOBUF and PROTOBUF_NATIVE have `descriptors` (a serialized
            FileDescriptorSet) and `message`, and take values in Protobuf's JSON encoding;
            AUTO_PRODUCE takes what is encoded already, and so does any schema with `raw`: True,
            which the client does not check.
        batch: messages to a batch; 0 sends each as an entry of its own.
        compression: NONE, LZ4, ZLIB, ZSTD or SNAPPY.
        chunk_size: largest chunk's size, metadata included.
        encryption: public keys by name, in PEM.
        hashing: by which keys choose partitions, JavaStringHash (default) or Murmur3_32Hash.
        """
        answer = self._ask(
            "write",
            topic=topic,
            messages=messages,
            schema=schema or {"type": "BYTES"},
            batch=batch,
            compression=compression,
            chunk_size=chunk_size,
            transaction=transaction,
            producer=producer,
            encryption=encryption,
            hashing=hashing,
        )
        return [_id(one) for one in answer]

    def begin(self) -> str:
        """A new transaction's id; it may stay open for an hour."""
        return str(self._ask("begin"))

    def commit(self, transaction: str) -> None:
        self._ask("commit", id=transaction)

    def abort(self, transaction: str) -> None:
        self._ask("abort", id=transaction)

    def raw_chunk(
        self,
        topic: str,
        producer: str,
        uuid: str,
        chunk_id: int,
        num_chunks: int,
        total_size: int,
        payload: bytes,
        sequence_id: int,
        *,
        compression: str = "NONE",
        uncompressed_size: int | None = None,
        key: str | None = None,
        properties: Mapping[str, str] | None = None,
        encryption: Mapping[str, str] | None = None,
    ) -> MessageId:
        """Send one entry that says of itself that it is a chunk; where it is stored.

        total_size, payload: of what is compressed already, if `compression` says so.
        encryption: public keys by name, in PEM.
        """
        answer = self._ask(
            "raw_chunk",
            topic=topic,
            producer=producer,
            uuid=uuid,
            chunk_id=chunk_id,
            num_chunks=num_chunks,
            total_size=total_size,
            payload=payload,
            sequence_id=sequence_id,
            compression=compression,
            uncompressed_size=uncompressed_size,
            key=key,
            properties=properties,
            encryption=encryption,
        )
        return _id(answer)

    def compress(self, data: bytes, compression: str) -> bytes:
        """As producers do."""
        return base64.b64decode(self._ask("compress", data=data, compression=compression))

    def read(
        self,
        topic: str,
        compacted: bool = False,
        *,
        schema: Json | None = None,
        decryption: Mapping[str, str] | None = None,
        idle_ms: int = 3000,
    ) -> list[Json]:
        """Everything a reader gets, from the earliest message until nothing comes for `idle_ms`,
        or longer where the broker is slow.

        schema: by default AUTO_CONSUME, which knows all but PROTOBUF.
        decryption: private keys by name; what cannot be decrypted comes as it is stored.
        Each: ledger, entry, partition, batch, has_key, key, key_base64, ordering_key, properties,
        publish_time, event_time, deliver_at, index, broker_publish_time, producer,
        replicated_from, sequence_id, schema_version, null, encrypted, encryption (the context of
        an encrypted entry: keys, param, algorithm, compression, uncompressed_size, batch_size,
        and the entry's whole metadata), data (raw), and `value`, or `value_error` where the client
        could not decode it. Bytes are base64.
        """
        rows: list[Json] = self._ask(
            "read",
            topic=topic,
            compacted=compacted,
            schema=schema,
            decryption=decryption,
            idle_ms=idle_ms,
        )
        return rows

    def make_keys(self, kind: str) -> tuple[str, str]:
        """A new public and private key for encryption, PEM. `kind`: RSA or ECDSA."""
        pair = self._ask("make_keys", kind=kind)
        return pair["public"], pair["private"]

    def decrypt(self, data: bytes, metadata: bytes, keys: Mapping[str, str]) -> bytes:
        """An entry's payload, compressed as it may be. `metadata`: the entry's MessageMetadata."""
        answer = self._ask(
            "decrypt",
            data=base64.b64encode(data).decode(),
            metadata=base64.b64encode(metadata).decode(),
            keys=keys,
        )
        return base64.b64decode(answer)

    def _ask(self, op: str, **arguments: Any) -> Any:
        child = self._child
        if child is None or child.stdin is None:
            raise OracleError("the Java client does not run")
        number, answers = next(self._numbers), queue.SimpleQueue[Json]()
        self._waiting[number] = answers
        request = json.dumps({"op": op, "number": number, **arguments}, default=_base64)
        try:
            with self._asking:
                child.stdin.write(request + "\n")
                child.stdin.flush()
            answer = answers.get(timeout=200)
        except (OSError, queue.Empty) as error:
            raise OracleError(f"no answer to {op}: {self._tail()}") from error
        finally:
            self._waiting.pop(number, None)
        if not answer:
            raise OracleError(f"the Java client died at {op}: {self._tail()}")
        if "error" in answer:
            raise OracleError(f"{op}: {answer['error'][:4000]}")
        return answer["result"]

    def _deliver(self, lines: IO[str]) -> None:
        """Give each answer to the thread that waits for it; an empty one to all at the end."""
        with lines:
            for line in lines:
                answer = json.loads(line)
                waiting = self._waiting.get(answer["number"])
                if waiting is not None:
                    waiting.put(answer)
        for waiting in list(self._waiting.values()):
            waiting.put({})

    def _tail(self) -> str:
        return self._path.read_text(errors="replace")[-3000:]


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"not JSON: {value!r}")


def _id(four: Sequence[int]) -> MessageId:
    ledger, entry, partition, batch = four
    return ledger, entry, partition, batch
