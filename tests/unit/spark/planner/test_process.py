"""The planner's protocol: every request gets one answer, whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from reader.errors import NotFoundError, UnavailableError
from spark_ext.planner.process import answer, read_lines, serve
from spark_ext.planner.sinks import Sinks
from spark_ext.planner.streams import Streams
from spark_ext.session.errors import from_json


class Stub:
    """Answers like Relations, from memory."""

    streams: Streams  # none of these tests asks for one
    sinks: Sinks

    def __init__(self) -> None:
        self.gate = threading.Event()

    def namespaces(self, config: str | None) -> list[str]:
        return ["a/b"] if config is None else [config]

    def namespace(self, config: str | None, namespace: str) -> dict[str, str]:
        raise NotFoundError(f"namespace {namespace} does not exist")

    def topics(self, config: str | None, namespace: str) -> list[str]:
        assert self.gate.wait(60)
        return [namespace]

    def load(self, config: str | None, catalog: str, namespace: str, name: str) -> Any:
        if name.startswith("gone"):
            raise NotFoundError("no table yet", hint="offload first")
        if name == "broken":
            raise UnavailableError("no answer\nfrom Pulsar", hint="start it")
        raise ZeroDivisionError("oops")

    def plan(
        self,
        config: str | None,
        namespace: str,
        name: str,
        columns: str,
        predicates: str,
        parallelism: int,
    ) -> Any:
        raise NotFoundError("no such snapshot")

    def files(self, config: str | None, namespace: str, name: str, predicates: str) -> Any:
        return [namespace, name, predicates]

    def extremes(
        self, config: str | None, namespace: str, name: str, columns: list[str]
    ) -> dict[str, Any]:
        return dict.fromkeys(columns)

    def archive(
        self, config: str | None, namespace: str, name: str, version: int | None, at: int
    ) -> Any:
        raise NotFoundError("no table yet", hint="offload first")


def ask(**request: Any) -> dict[str, Any]:
    return answer(Stub(), {"id": 7, **request})


def test_an_answer() -> None:
    assert ask(op="namespaces") == {"id": 7, "ok": ["a/b"]}
    assert ask(op="namespaces", config="file") == {"id": 7, "ok": ["file"]}


@pytest.mark.parametrize(
    ("request_", "kind", "message"),
    [
        ({"op": "namespace", "namespace": ["x", "y"]}, "not_found", "namespace x/y does not exist"),
        (
            {"op": "load", "catalog": "c", "namespace": [], "name": "broken"},
            "error",
            "no answer from Pulsar (start it)",
        ),
        ({"op": "archive", "namespace": [], "name": "t"}, "error", "no table yet (offload first)"),
        (
            {"op": "load", "catalog": "c", "namespace": [], "name": "gone$tiers=parquet"},
            "error",
            "no table yet (offload first)",
        ),
        (
            {"op": "load", "catalog": "c", "namespace": [], "name": "gone"},
            "not_found",
            "no table yet (offload first)",
        ),
        ({"op": "nonsense"}, "error", "unknown operation of the planner: 'nonsense'"),
    ],
)
def test_errors_are_one_line(request_: dict[str, Any], kind: str, message: str) -> None:
    found = ask(**request_)
    data = found["error"].pop("data")
    assert found == {"id": 7, "error": {"kind": kind, "message": message}}
    error = from_json(data)
    assert error is not None and " ".join(str(error).split()) == message


class OpenedSinks:
    """Takes every write."""

    def open(self, config: str | None, options: dict[str, str], *rest: Any) -> list[Any]:
        return [config, *rest]


@pytest.mark.parametrize(
    ("config", "options", "refused"),
    [
        ("file", {}, False),
        ("file", {"config": "file"}, False),
        ("file", {"CONFIG": "other"}, True),
        (None, {"config": "file"}, True),
        (None, {"configs": "file"}, False),
    ],
)
def test_a_write_chooses_no_settings(
    config: str | None, options: dict[str, str], refused: bool
) -> None:
    stub = Stub()
    stub.sinks = OpenedSinks()  # type: ignore[assignment]
    more: dict[str, Any] = {"namespace": [], "name": None, "columns": "c", "query": "q"}
    request = {"op": "sink_open", "config": config, "options": json.dumps(options)} | more
    found = answer(stub, request | {"streaming": False})
    if refused:
        assert found["error"]["message"] == (
            "the settings of Pulsar cannot be chosen by an option (leave it out: they are the "
            "catalog's)"
        )
    else:
        assert found["ok"] == [config, None, "c", "q", False]


def test_a_bug_is_an_answer_too(capsys: pytest.CaptureFixture[str]) -> None:
    found = ask(op="load", catalog="c", namespace=[], name="x")
    assert found["error"]["message"] == "the planner failed: ZeroDivisionError: oops"
    assert "Traceback" in capsys.readouterr().err


def test_what_cannot_be_written_is_an_answer_too() -> None:
    """One that there is no memory for, say: the JVM waits for it."""

    class Unwritable(Stub):
        def namespaces(self, config: str | None) -> Any:
            return {b"bytes"}

    answers: list[Any] = []
    line = b'{"id": 3, "op": "namespaces"}'
    serve(lambda: iter([line]), lambda text: answers.append(json.loads(text)), Unwritable())
    [found] = answers
    assert found["id"] == 3
    assert found["error"]["message"].startswith("the planner failed: TypeError: ")


def test_a_slow_request_does_not_hold_up_others() -> None:
    stub = Stub()
    answers: list[Any] = []

    def write(line: bytes) -> None:
        answers.append(json.loads(line))
        if len(answers) == 1:
            stub.gate.set()

    slow = b'{"id": 1, "op": "topics", "namespace": ["n"]}'
    fast = b'{"id": 2, "op": "namespaces"}'
    serve(lambda: iter([slow, fast]), write, stub)
    assert [one["id"] for one in answers] == [2, 1]


def test_lines_are_put_together_and_end_with_the_pipe() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b'{"a":')

    def finish() -> None:
        os.write(write_end, b"1}\n{}\n")
        os.close(write_end)

    threading.Timer(0.05, finish).start()
    assert list(read_lines(read_end, idle=60)) == [b'{"a":1}', b"{}"]
    os.close(read_end)


def test_lines_end_when_idle() -> None:
    read_end, write_end = os.pipe()
    assert list(read_lines(read_end, idle=0.05)) == []
    os.close(read_end)
    os.close(write_end)


def test_the_process_answers_ends_with_its_input_and_keeps_stdout_clean() -> None:
    command = [sys.executable, "-m", "spark_ext.planner.process", "--idle", "120"]
    done = subprocess.run(
        command, input=b'{"id": 1, "op": "x"}\n', capture_output=True, timeout=120, check=True
    )
    [line] = done.stdout.splitlines()
    assert json.loads(line)["error"]["message"] == "unknown operation of the planner: 'x'"


def test_the_process_ends_by_itself_when_idle() -> None:
    command = [sys.executable, "-m", "spark_ext.planner.process", "--idle", "0.1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait(120) == 0


_LOADING = """
import sys
from threading import Barrier, Thread

from spark_ext.planner.process import answer
from spark_ext.without_pandas import keep_out_pandas

keep_out_pandas()  # as the planner does
OPERATIONS = ["plan", "stream_plan", "sink_open", "sink_commit"] * 2
barrier, failed = Barrier(len(OPERATIONS)), []


class Asked:
    def __getattr__(self, name):
        assert "pyspark.sql.types" in sys.modules
        return lambda *of: {}


class Relations(Asked):
    streams = sinks = Asked()


def ask(operation):
    rest = dict.fromkeys(("write", "epoch", "messages", "columns", "query", "streaming"), "")
    more = {"name": "t", "options": "{}", "predicates": "", "parallelism": 1, "op": operation}
    barrier.wait()
    found = answer(Relations(), rest | more)
    if "error" in found:
        failed.append(found["error"])


assert "pyspark" not in sys.modules
threads = [Thread(target=ask, args=(one,)) for one in OPERATIONS]
for one in threads:
    one.start()
for one in threads:
    one.join()
sys.exit(str(failed) if failed else 0)
"""


def test_pyspark_is_imported_by_one_thread_at_a_time() -> None:
    """Its modules import each other: two threads that begin in different places fail."""
    ended = subprocess.run([sys.executable, "-c", _LOADING], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
