"""Messages come out as they went in, and anything else is one clear error."""

import json
from dataclasses import is_dataclass
from typing import Any

import pytest

from reader.errors import PulsarLakeError
from spark_ext.planner import protocol
from spark_ext.planner.encoding import Reply, Request, decode, decode_request, encode, questions
from spark_ext.planner.java_messages import TARGET, java_source
from spark_ext.planner.protocol import (
    Aggregate,
    ColdRead,
    CommitWrite,
    Expression,
    FindNextBatch,
    HotRead,
    ListTopics,
    MicroBatch,
    Names,
    PlanReads,
    Stream,
    Write,
    WriteState,
)
from tests.unit.spark.planner.expressions import call, column, literal

STREAM = Stream({"topic": "a/b/c", "näme": ""}, "place")
FILTER = call("OR", call("=", column("a", "b"), literal(3, "long")), call(None))
BATCH = MicroBatch(STREAM, "{}", "{}", "id", "token")


@pytest.mark.parametrize(
    "message",
    [
        ListTopics("a/b"),
        FindNextBatch(STREAM, "{}", "{}", None, "{}", 2.5, "[]"),
        PlanReads(
            (ColdRead("a/b", "c", None, (FILTER,), (Aggregate("count", None),)),),
            (HotRead("", "broker", BATCH, "{}", ()),),
            4,
        ),
        CommitWrite(
            Write({}, None, "app", None, True, 3, WriteState(-1, {"p": 1 << 62}, "")),
            1 << 40,
            (b"", b"\0\xff"),
        ),
        *(literal(value, "x") for value in (None, True, 1, 1.5, "text")),
    ],
    ids=repr,
)
def test_what_is_read_is_what_was_written(message: object) -> None:
    kind = type(message)
    assert decode(kind, json.loads(json.dumps(encode(message, kind)))) == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "A message of the planner lacks the field FindNextBatch.began"),
        ({"more": 1}, "A message of the planner does not have the field FindNextBatch.more"),
        ({"start": 3}, "The field FindNextBatch.start of a message of the planner cannot be 3"),
        ({"ending": False}, "The field FindNextBatch.ending of a message of the planner cannot be"),
        (
            {"waited": "1"},
            "The field FindNextBatch.waited of a message of the planner cannot be '1'",
        ),
        (
            {"stream": {"place": ""}},
            "A message of the planner lacks the field FindNextBatch.stream.",
        ),
        ({"stream": []}, "The field FindNextBatch.stream of a message of the planner cannot be []"),
    ],
)
def test_what_is_no_message(value: dict[str, Any], message: str) -> None:
    good = encode(FindNextBatch(STREAM, "{}", "{}", None, None, 0.0, ""), FindNextBatch)
    with pytest.raises(PulsarLakeError) as raised:
        decode(FindNextBatch, {**good, **value} if value else {})
    assert str(raised.value).startswith(message)


def test_an_answer_has_its_questions_class() -> None:
    with pytest.raises(TypeError, match="ListTopics is no Names"):
        encode(ListTopics("a"), questions()["ListTopics"][1])


def test_filters_are_hundreds_of_levels_deep() -> None:
    deep = encode(column("a"), Expression)
    for _ in range(300):
        deep = encode(call("+"), Expression) | {"args": [deep]}
    found = decode(Expression, deep)
    while found.args:
        (found,) = found.args
    assert found == column("a")


def test_a_request_names_a_question() -> None:
    request = Request(1, "file", "ListTopics", encode(ListTopics("n"), ListTopics))
    line = json.dumps(encode(request, Request)).encode()
    assert decode_request(line) == (request, ListTopics("n"))


def test_every_message_has_an_encoding() -> None:
    """And each question an answer, which is a message."""
    messages = {name: kind for name, kind in vars(protocol).items() if is_dataclass(kind)}
    for name, kind in messages.items():
        assert java_source().count(f"record {name}(") == 1
        with pytest.raises(TypeError):
            encode(object(), kind)
    assert all(messages[answer.__name__] is answer for _, answer in questions().values())
    assert questions()["ListTopics"] == (ListTopics, Names)


def test_javas_records_are_those_of_the_table() -> None:
    assert TARGET.read_text() == java_source(), "run: python -m spark_ext.planner.java_messages"
    assert "record Reply(long id, JsonNode answer, Failure failure)" in java_source()
    assert Reply(1, None, None).failure is None
