"""Our errors across Spark as data: class, message, hint and context; nobody parses their text.

Two ways lead through Spark, and both carry the same JSON:

- Python workers: an exception arrives as text. ``carried`` adds a note to ours, which stands there
  as a line of its own: ``pulsar-lake-error: {…}``. Its traceback does not arrive, unless the
  environment has ``PULSAR_LAKE_DEBUG=1``: what is wrong is in the message.
- The JVM's catalog: the planner's answer has the JSON beside the message, and the shim puts it
  into the exception's message parameters under ``pulsarLakeError``.

``error_of`` finds our error again in whatever Spark raised.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reader import errors
from reader.errors import PulsarLakeError, debugging

PARAMETER = "pulsarLakeError"
"""The message parameter of the shim's exceptions (``PulsarCatalog.java``)."""

_MARK = "pulsar-lake-error: "
_NO_TRACEBACK = "SPARK_HIDE_TRACEBACK"
"""What ``spark.sql.execution.pyspark.udf.hideTraceback.enabled`` is to Spark's Python workers."""
_MOST_CAUSES = 20


def to_data(error: PulsarLakeError) -> dict[str, Any]:
    """Return the members of the JSON: kind, message, hint, context."""
    context = json.loads(json.dumps(dict(error.context), default=str))
    kind = type(error).__name__
    return {"kind": kind, "message": error.message, "hint": error.hint, "context": context}


def to_json(error: PulsarLakeError) -> str:
    """Return one line of ASCII."""
    return json.dumps(to_data(error), separators=(",", ":"))


def from_json(text: str) -> PulsarLakeError | None:
    """The error that ``to_json`` wrote at the start of ``text``; None if there is none.

    A class that is unknown to this version becomes the root's.
    """
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
        kind = getattr(errors, value["kind"], PulsarLakeError)
        if not (isinstance(kind, type) and issubclass(kind, PulsarLakeError)):
            kind = PulsarLakeError
        return kind(value["message"], hint=value["hint"], context=value["context"])
    except (ValueError, KeyError, TypeError):
        return None


@contextmanager
def carried(**context: object) -> Iterator[None]:
    """Whatever of ours is raised inside can be found again behind Spark, with this context.

    For a Python worker that ends with the error.
    """
    try:
        yield
    except PulsarLakeError as error:
        error.context = {**context, **error.context}
        error.add_note(_MARK + to_json(error))
        if not debugging():
            os.environ[_NO_TRACEBACK] = "1"
        raise


def error_of(error: BaseException) -> PulsarLakeError | None:
    """Our error that made Spark raise ``error``; None where it was none of ours."""
    if isinstance(error, PulsarLakeError):
        return error
    return _of_parameters(error) or _of_text(str(error))


def _of_parameters(error: BaseException) -> PulsarLakeError | None:
    """Out of the message parameters of a Spark exception, or of one that caused it."""
    ask = getattr(error, "getMessageParameters", None)
    found = _parameter(ask()) if ask is not None else None
    if found is not None:
        return found
    # Only an exception of this process's JVM says what caused it.
    origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    for _ in range(_MOST_CAUSES):
        if origin is None:
            return None
        ask = getattr(origin, "getMessageParameters", None)
        try:
            found = _parameter(ask()) if ask is not None else None
        except Exception:  # noqa: BLE001 - py4j: this kind of exception has no parameters
            found = None
        if found is not None:
            return found
        origin = origin.getCause()
    return None


def _parameter(parameters: Mapping[str, Any] | None) -> PulsarLakeError | None:
    text = parameters.get(PARAMETER) if parameters else None
    return from_json(text) if text else None


def _of_text(text: str) -> PulsarLakeError | None:
    """The last one: where errors caused each other, that is what the task failed with."""
    at = text.rfind(_MARK)
    while at >= 0:
        found = from_json(text[at + len(_MARK) :])
        if found is not None:
            return found
        at = text.rfind(_MARK, 0, at)
    return None
