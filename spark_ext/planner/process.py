"""The process behind the catalog shim: one line of JSON in, one line of JSON out.

    {"id": 1, "op": "load", "config": PATH or null, "catalog": "pulsar",
     "namespace": ["public/default"], "name": "orders"}
    {"id": 1, "ok": {…}}
    or {"id": 1, "error": {"kind": "not_found" or "error", "message": …, "data": …}}

Operations and their answers: ``namespaces`` [name …]; ``namespace`` {} if it exists; ``topics``
[name …]; ``load`` a view, a hot table or a cold one; ``plan`` the tasks of a scan of a hot table;
``files`` what a scan of a cold one reads; ``extremes`` what the log knows of its rows; ``archive``
{name} of the cold table of a version. ``spark_ext.planner.relations`` says what is in them. Answers
come in any order.
``data``: the error as ``spark_ext.session.errors`` writes it.
Everything else that is printed goes to stderr, Spark's log.

It ends when its input closes (the JVM is gone) or after ``--idle`` seconds without a request.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, BinaryIO, Protocol

from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError
from spark_ext.session.errors import to_json
from spark_ext.without_pandas import keep_out_pandas

__all__ = ["Operations", "answer", "main", "read_lines", "serve"]

_IDLE_SECONDS = 600.0
_PARALLEL = 8
_loading = Lock()


class Operations(Protocol):
    """What requests ask for (``Relations``). ``streams``: a ``Streams``; ``sinks``: a ``Sinks``."""

    streams: Any
    sinks: Any

    def namespaces(self, config_path: str | None, /) -> Any: ...
    def namespace(self, config_path: str | None, namespace: str, /) -> Any: ...
    def topics(self, config_path: str | None, namespace: str, /) -> Any: ...
    def load(self, config_path: str | None, catalog: str, namespace: str, name: str, /) -> Any: ...
    def plan(
        self,
        config_path: str | None,
        namespace: str,
        name: str,
        columns: str,
        predicates: str,
        parallelism: int,
        /,
    ) -> Any: ...
    def files(
        self, config_path: str | None, namespace: str, name: str, predicates: str, /
    ) -> Any: ...
    def extremes(
        self, config_path: str | None, namespace: str, name: str, columns: list[str], /
    ) -> Any: ...
    def archive(
        self, config_path: str | None, namespace: str, name: str, version: int | None, at: int, /
    ) -> Any: ...


def answer(relations: Operations, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request; errors become a line of text, never a trace."""
    try:
        return {"id": request.get("id"), "ok": _dispatch(relations, request)}
    except NotFoundError as error:
        from spark_ext.planner.relations import TIERS_SUFFIX

        # Spark's own message for an unknown name has no room for a reason: give that where the
        # name may well exist, and what is missing is its table.
        special = request.get("op") == "archive" or TIERS_SUFFIX in (request.get("name") or "")
        kind = "error" if special else "not_found"
        return _error(request, kind, error)
    except PulsarLakeError as error:
        return _error(request, "error", error)
    except Exception as error:  # noqa: BLE001  # the process must go on for other queries
        return _failed(request, error)


def _failed(request: dict[str, Any], error: Exception) -> dict[str, Any]:
    traceback.print_exception(error)
    failure = PulsarLakeError(f"the planner failed: {type(error).__name__}: {error}")
    return _error(request, "error", failure)


def _error(request: dict[str, Any], kind: str, error: PulsarLakeError) -> dict[str, Any]:
    text = " ".join(str(error).split())
    return {
        "id": request.get("id"),
        "error": {"kind": kind, "message": text, "data": to_json(error)},
    }


def _load_pyspark(operation: str) -> None:
    """What an operation needs of pyspark, imported by one thread at a time.

    Its modules import each other in circles: two threads that begin in different places fail.
    """
    if operation in ("plan", "stream_plan"):
        with _loading:
            import spark_ext.datasource.tasks
    elif operation in ("sink_create", "sink_open", "sink_commit"):
        with _loading:
            import spark_ext.datasource.sink_tasks
            import spark_ext.planner.sink_columns  # noqa: F401


def _dispatch(relations: Operations, request: dict[str, Any]) -> Any:
    _load_pyspark(request.get("op") or "")
    config = request.get("config")
    namespace = "/".join(request.get("namespace") or ())
    match request.get("op"):
        case "namespaces":
            return relations.namespaces(config)
        case "namespace":
            return relations.namespace(config, namespace)
        case "topics":
            return relations.topics(config, namespace)
        case "load":
            return relations.load(config, request["catalog"], namespace, request["name"])
        case "plan":
            return relations.plan(
                config,
                namespace,
                request["name"],
                request["columns"],
                request["predicates"],
                request["parallelism"],
            )
        case "archive":
            version, at = request.get("version"), request.get("at", 0)
            return relations.archive(config, namespace, request["name"], version, at)
        case "files":
            return relations.files(config, namespace, request["name"], request["predicates"])
        case "extremes":
            return relations.extremes(config, namespace, request["name"], request["columns"])
        case str(name) if name.startswith("sink_"):
            return _of_sink(relations.sinks, name.removeprefix("sink_"), config, namespace, request)
        case str(name) if name.startswith("stream_"):
            return _of_stream(relations.streams, name.removeprefix("stream_"), config, request)
    raise PulsarLakeError(f"unknown operation of the planner: {request.get('op')!r}")


def _of_sink(
    sinks: Any, name: str, config: str | None, namespace: str, request: dict[str, Any]
) -> Any:
    topic = (namespace, request.get("name") or "")
    match name:
        case "table" | "drop":
            return getattr(sinks, name)(config, *topic)
        case "create":
            properties = json.loads(request["properties"])
            return sinks.create(config, *topic, request["columns"], properties)
        case "open":
            options = json.loads(request["options"])
            _require_config(options, config)
            return sinks.open(
                config,
                options,
                "/".join(topic) if topic[1] else None,
                request["columns"],
                request["query"],
                request["streaming"],
            )
        case "commit":
            return sinks.commit(config, request["write"], request["epoch"], request["messages"])
        case "sent":
            return sinks.sent(config, request["write"], request["epoch"])
        case "abort":
            return sinks.abort(config, request["write"], request["decided"], request["messages"])
    raise PulsarLakeError(f"unknown operation of the planner: sink_{name}")


def _require_config(options: Mapping[str, str], config: str | None) -> None:
    """Raises ConfigurationError where an option chooses other settings than the catalog's."""
    if any(value != config for name, value in options.items() if name.lower() == "config"):
        raise ConfigurationError(
            "the settings of Pulsar cannot be chosen by an option",
            hint="leave it out: they are the catalog's",
        )


def _of_stream(streams: Any, name: str, config: str | None, request: dict[str, Any]) -> Any:
    arguments = {
        "columns": (),
        "bounds": (),
        "end": (),
        "next": ("start", "ending", "until", "waited"),
        "batch": ("start", "end", "began", "columns"),
        "files": ("start", "end", "snapshots", "part", "predicates"),
        "plan": ("start", "end", "snapshots", "tier", "columns", "predicates", "parallelism"),
        "metrics": ("at", "latest"),
    }
    if name not in arguments:
        raise PulsarLakeError(f"unknown operation of the planner: stream_{name}")
    values = [request.get(one) for one in arguments[name]]
    place = request.get("place", "")
    return getattr(streams, name)((config, request["options"], place), *values)


def _line(reply: dict[str, Any]) -> bytes:
    return json.dumps(reply, separators=(",", ":")).encode() + b"\n"


def serve(
    requests: Callable[[], Iterator[bytes]],
    write: Callable[[bytes], object],
    relations: Operations,
) -> None:
    """Answer every line of ``requests()``, several at once, each answer with one ``write``."""
    lock = Lock()

    def work(line: bytes) -> None:
        request = json.loads(line)
        try:
            text = _line(answer(relations, request))
        except Exception as error:  # noqa: BLE001  # no memory for it: one that is short, or none
            text = _line(_failed(request, error))
        with lock:
            write(text)

    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="planner") as pool:
        running: set[Future[None]] = set()
        for line in requests():
            if line:
                running.add(pool.submit(work, line))
            running = {task for task in running if not task.done()}


def read_lines(descriptor: int, idle: float) -> Iterator[bytes]:
    """The lines of a pipe until it ends, or nothing came for ``idle`` seconds."""
    begun: list[bytes] = []
    while select.select([descriptor], [], [], idle)[0]:
        data = os.read(descriptor, 1 << 16)
        if not data:
            return
        first, *others = data.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun)
            begun = [other]


def _own_stdout() -> BinaryIO:
    """The real stdout for answers alone; whatever else prints goes to stderr."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return out


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m spark_ext.planner.process")
    parser.add_argument("--idle", type=float, default=_IDLE_SECONDS, metavar="SECONDS")
    options = parser.parse_args(arguments)
    # Ctrl-C in a shell is for the query, not for its helper.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_out_pandas()
    out = _own_stdout()
    from spark_ext.planner.relations import Relations  # pyarrow, which looks for pandas at once

    serve(lambda: read_lines(0, options.idle), out.write, Relations())
    return 0


if __name__ == "__main__":
    sys.exit(main())
