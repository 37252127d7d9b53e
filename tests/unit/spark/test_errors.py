"""Our errors across Spark: class, message, hint and context come out as they went in."""

from __future__ import annotations

import json
import os
import pickle
import traceback
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar_lake import DefaultSource
from reader import errors
from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from spark_ext.session.errors import PARAMETER, carried, error_of, from_json, to_json

KINDS = [
    one
    for one in vars(errors).values()
    if isinstance(one, type) and issubclass(one, PulsarLakeError)
]
TEXTS = [
    "plain",
    'a "quoted" \\" one, {"class": "x"}',
    "two\nlines\r\n\tand a tab",
    "grüße 消息 \u2028 \x00 \U0001f600",
    "pulsar-lake-error: {}",
    "",
]


def same(found: PulsarLakeError | None, error: PulsarLakeError) -> bool:
    return (
        found is not None
        and type(found) is type(error)
        and (found.message, found.hint) == (error.message, error.hint)
        and dict(found.context) == dict(error.context)
    )


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``carried`` changes is put back."""
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")


def as_worker_text(error: BaseException) -> str:
    """What Spark's Python worker writes, inside of what Spark's driver makes of it."""
    trace = "".join(traceback.format_exception(error))
    return (
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times\n"
        f"org.apache.spark.api.python.PythonException: {trace}\n"
        "\tat org.apache.spark.api.python.BasePythonRunner\nCaused by: java.lang.Exception: {\n"
    )


def through_a_worker(error: PulsarLakeError, **context: object) -> PulsarLakeError | None:
    try:
        with carried(**context):
            raise error
    except PulsarLakeError as caught:
        return error_of(RuntimeError(as_worker_text(caught)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_every_class_arrives(kind: type[PulsarLakeError], text: str) -> None:
    for hint in (None, text):
        error = kind(text, hint=hint, context={"topic": text, "ledger": 7})
        assert same(from_json(to_json(error)), error)
        assert same(pickle.loads(pickle.dumps(error)), error)
        assert same(through_a_worker(error), error)
        assert "\n" not in to_json(error)


@given(st.text(), st.none() | st.text())
def test_any_text_arrives(message: str, hint: str | None) -> None:
    error = NotFoundError(message, hint=hint)
    assert same(through_a_worker(error), error)


@pytest.mark.parametrize(("debug", "hidden"), [("", "1"), ("0", "1"), ("1", None)])
def test_the_traceback_is_for_who_asks(
    monkeypatch: pytest.MonkeyPatch, debug: str, hidden: str | None
) -> None:
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK")
    monkeypatch.setenv("PULSAR_LAKE_DEBUG", debug)
    through_a_worker(NotFoundError("gone"))
    assert os.environ.get("SPARK_HIDE_TRACEBACK") == hidden


def test_the_task_adds_where_it_was() -> None:
    found = through_a_worker(NotFoundError("gone", context={"ledger": 7}), partition="p", ledger=1)
    assert found is not None
    assert found.context == {"ledger": 7, "partition": "p"}


def test_of_errors_that_caused_each_other_the_last() -> None:
    def fail() -> None:
        try:
            with carried():
                raise UnavailableError("first")
        except UnavailableError as error:
            with carried():
                raise NotFoundError("then", hint="look") from error

    with pytest.raises(NotFoundError) as caught:
        fail()
    found = error_of(RuntimeError(as_worker_text(caught.value)))
    assert same(found, NotFoundError("then", hint="look"))


class SparkError(Exception):
    """As pyspark's exceptions: with message parameters."""

    def __init__(self, parameters: Mapping[str, str] | None, cause: object = None) -> None:
        super().__init__("[PLAIN] text")
        self._parameters = parameters
        self._origin = cause

    def getMessageParameters(self) -> Mapping[str, str] | None:  # noqa: N802 - Spark's name
        return self._parameters


class Origin:
    """As an exception of the JVM, through py4j."""

    def __init__(self, parameters: Mapping[str, str], cause: Origin | None = None) -> None:
        self._parameters = parameters
        self._cause = cause

    def getMessageParameters(self) -> Mapping[str, str]:  # noqa: N802
        return self._parameters

    def getCause(self) -> Origin | None:  # noqa: N802
        return self._cause


def test_the_shims_exceptions_have_it_as_a_parameter() -> None:
    error = UnavailableError("no answer", hint="start it")
    parameters = {PARAMETER: to_json(error)}
    assert same(error_of(SparkError(parameters)), error)
    assert same(error_of(SparkError({}, Origin({}, Origin(parameters)))), error)
    assert error_of(SparkError(None, Origin({}))) is None


def test_what_is_none_of_ours() -> None:
    assert error_of(ValueError("reader.errors.NotFoundError: said somewhere")) is None
    assert error_of(ValueError("pulsar-lake-error: {broken")) is None
    assert error_of(ValueError("pulsar-lake-error: [1]")) is None
    error = NotFoundError("itself")
    assert error_of(error) is error


def test_a_class_of_another_version_is_the_root() -> None:
    value = json.loads(to_json(NotFoundError("x", hint="y")))
    for name in ("LaterError", "plain_text"):
        found = from_json(json.dumps(value | {"kind": name}))
        assert type(found) is PulsarLakeError
        assert found.hint == "y"


def test_the_format_in_a_session_without_the_shim() -> None:
    """Where no settings were chosen, none are taken by default."""
    assert DefaultSource.name() == "pulsar"
    with pytest.raises(ConfigurationError, match="does not have the rules") as caught:
        DefaultSource({"topic": "a/b/c", "config": "lake.toml"})
    assert "before Spark starts" in str(caught.value.hint)
    assert error_of(RuntimeError("\n".join(caught.value.__notes__))) is not None
