"""The planner's protocol: every request gets one answer, whatever happens."""

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from reader.errors import NotFoundError, UnavailableError
from spark_ext.planner.encoding import ErrorData, Reply, Request, decode, encode
from spark_ext.planner.process import read_lines, reply, serve
from spark_ext.planner.protocol import (
    FindNamespace,
    ListNamespaces,
    ListTopics,
    LoadRelation,
    LoadVersion,
    Names,
    Question,
)
from spark_ext.session.errors import from_json


class Stub:
    """Answers from memory."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def answer(self, config: str | None, question: Question[object]) -> object:
        match question:
            case ListNamespaces():
                return Names(("a/b",) if config is None else (config,))
            case ListTopics():
                assert self.gate.wait(60)
                return Names((question.namespace,))
            case FindNamespace():
                raise NotFoundError(f"namespace {question.namespace} does not exist")
            case LoadRelation(name="broken"):
                raise UnavailableError("no answer\nfrom Pulsar", hint="start it")
            case LoadRelation(name="x"):
                raise ZeroDivisionError("oops")
        raise NotFoundError("no table yet", hint="offload first")


def line(question: Question[object], config: str | None = None, number: int = 7) -> bytes:
    name, fields = type(question).__name__, encode(question, type(question))
    return json.dumps(encode(Request(number, config, name, fields), Request)).encode()


def ask(question: Question[object], config: str | None = None) -> Reply:
    return replied(reply(Stub().answer, line(question, config)))


def replied(text: bytes) -> Reply:
    return decode(Reply, json.loads(text))


def test_an_answer() -> None:
    assert ask(ListNamespaces()) == Reply(7, {"names": ["a/b"]}, None)
    assert ask(ListNamespaces(), "file") == Reply(7, {"names": ["file"]}, None)


@pytest.mark.parametrize(
    ("question", "not_found", "message"),
    [
        (FindNamespace("x/y"), True, "namespace x/y does not exist"),
        (LoadRelation("c", "", "broken"), False, "no answer from Pulsar (start it)"),
        (LoadVersion("", "t", 1, None), False, "no table yet (offload first)"),
        (LoadRelation("c", "", "gone$tiers=parquet"), False, "no table yet (offload first)"),
        (LoadRelation("c", "", "gone"), True, "no table yet (offload first)"),
    ],
)
def test_errors_are_one_line(question: Question[object], not_found: bool, message: str) -> None:
    failure = ask(question).failure
    assert failure is not None
    assert (failure.message, failure.not_found) == (message, not_found)
    error = from_json(json.dumps(encode(failure.error, ErrorData)))
    assert error is not None and " ".join(str(error).split()) == message


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("Nonsense", {}, "The planner does not know the question 'Nonsense'"),
        ("Question", {}, "The planner does not know the question 'Question'"),
        ("Names", {"names": []}, "The planner does not know the question 'Names'"),
        ("ListTopics", {}, "A message of the planner lacks the field ListTopics.namespace"),
    ],
)
def test_what_is_no_question(name: str, fields: dict[str, Any], message: str) -> None:
    request = json.dumps(encode(Request(3, None, name, fields), Request)).encode()
    found = replied(reply(Stub().answer, request))
    assert found.id == 3
    assert found.failure is not None and found.failure.message == message


def test_a_bug_is_an_answer_too(capsys: pytest.CaptureFixture[str]) -> None:
    failure = ask(LoadRelation("c", "", "x")).failure
    assert failure is not None
    assert failure.message == "the planner failed: ZeroDivisionError: oops"
    assert "Traceback" in capsys.readouterr().err


def test_what_cannot_be_written_is_an_answer_too() -> None:
    """One that there is no memory for, say: the JVM waits for it."""

    answers: list[bytes] = []
    serve(lambda: iter([line(ListNamespaces())]), answers.append, lambda *of: {b"bytes"})
    [found] = map(replied, answers)
    assert found.id == 7
    assert found.failure is not None
    assert found.failure.message == "the planner failed: TypeError: set is no Names"


def test_a_slow_request_does_not_hold_up_others() -> None:
    stub = Stub()
    answers: list[Reply] = []

    def write(text: bytes) -> None:
        answers.append(replied(text))
        if len(answers) == 1:
            stub.gate.set()

    lines = [line(ListTopics("n"), number=1), line(ListNamespaces(), number=2)]
    serve(lambda: iter(lines), write, stub.answer)
    assert [one.id for one in answers] == [2, 1]


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
        command,
        input=b'{"id": 1, "config": null, "name": "x", "question": {}}\n',
        capture_output=True,
        timeout=120,
        check=True,
    )
    [text] = done.stdout.splitlines()
    failure = replied(text).failure
    assert failure is not None
    assert failure.message == "The planner does not know the question 'x'"


def test_the_process_ends_by_itself_when_idle() -> None:
    command = [sys.executable, "-m", "spark_ext.planner.process", "--idle", "0.1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait(120) == 0


_LOADING = """
import sys
from threading import Barrier, Thread

from spark_ext.planner import protocol as ask
from spark_ext.planner.dispatch import load_pyspark
from spark_ext.without_pandas import keep_out_pandas

keep_out_pandas()  # as the planner does
write = ask.Write({}, None, "", None, False, 0, None)
read = ask.HotRead("", "", None, "", ())
QUESTIONS = [
    ask.PlanReads((), (read,), 1),
    ask.OpenWrite(None, {}, "", "", False),
    ask.CommitWrite(write, None, ()),
    ask.CreateTopic("", "", "", {}),
] * 2
barrier, failed = Barrier(len(QUESTIONS)), []


def load(question):
    barrier.wait()
    try:
        load_pyspark(question)
        assert "pyspark.sql.types" in sys.modules
    except BaseException as error:
        failed.append(repr(error))


load_pyspark(ask.PlanReads((), (), 1))
assert "pyspark" not in sys.modules
threads = [Thread(target=load, args=(one,)) for one in QUESTIONS]
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
