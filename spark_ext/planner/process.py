"""The process: ``python -m spark_ext.planner.process``; a line is a request, and a line its reply.

    {"id": 1, "config": PATH or null, "name": "ListTopics", "question": {"namespace": "a/b"}}
    {"id": 1, "answer": {"names": ["orders"]}, "failure": null}

``protocol`` has the questions with their answers. Replies come in any order. Everything else that
is printed goes to stderr, Spark's log.

It ends when its input closes (the JVM is gone) or after ``--idle`` seconds without a request.
"""

import argparse
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import BinaryIO

from reader.errors import NotFoundError, PulsarLakeError
from spark_ext.planner.encoding import (
    ErrorData,
    Failure,
    Reply,
    Request,
    decode_request,
    encode,
    questions,
)
from spark_ext.planner.protocol import LoadRelation, LoadVersion, Question
from spark_ext.planner.topic_names import TIERS_SUFFIX
from spark_ext.session.errors import to_data
from spark_ext.without_pandas import keep_out_pandas

_IDLE_SECONDS = 600.0
_PARALLEL = 8

Answering = Callable[[str | None, Question[object]], object]
"""What answers a question, with the settings of a configuration (``Planner.answer``)."""


def reply(answering: Answering, line: bytes) -> bytes:
    """Return the reply to one line; errors become a line of text, never a trace."""
    request, question = None, None
    try:
        request, question = decode_request(line)
        answer = answering(request.config, question)
        encoded = encode(answer, questions()[request.name][1])
        return _line(Reply(request.id, encoded, None))
    except PulsarLakeError as error:
        # Spark's own message for an unknown name has no room for a reason: give that where the
        # name may well exist, and what is missing is its table.
        special = isinstance(question, LoadVersion) or (
            isinstance(question, LoadRelation) and TIERS_SUFFIX in question.name
        )
        return _failed(request, line, error, isinstance(error, NotFoundError) and not special)
    except Exception as error:  # noqa: BLE001  # the process must go on for other queries
        traceback.print_exception(error)
        failure = PulsarLakeError(f"the planner failed: {type(error).__name__}: {error}")
        return _failed(request, line, failure)


def _failed(
    request: Request | None, line: bytes, error: PulsarLakeError, not_found: bool = False
) -> bytes:
    number = request.id if request is not None else int(json.loads(line)["id"])
    message = " ".join(str(error).split())
    return _line(Reply(number, None, Failure(message, not_found, ErrorData(**to_data(error)))))


def _line(value: Reply) -> bytes:
    return json.dumps(encode(value, Reply), separators=(",", ":")).encode() + b"\n"


def serve(
    requests: Callable[[], Iterator[bytes]], write: Callable[[bytes], object], answering: Answering
) -> None:
    """Answer every line of ``requests()``, several at once, each answer with one ``write``."""
    lock = Lock()

    def work(line: bytes) -> None:
        text = reply(answering, line)
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
    from spark_ext.planner.dispatch import Planner  # pyarrow, which looks for pandas at once

    serve(lambda: read_lines(0, options.idle), out.write, Planner().answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
