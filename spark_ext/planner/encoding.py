"""Messages as JSON: an object with a member for each field, bytes as base64.

A member that is missing, unknown or of another type is an error. Source: RFC 8259.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from reader.errors import PulsarLakeError
from spark_ext.planner import protocol
from spark_ext.planner.protocol import Question

T = TypeVar("T")
_PLAIN = (str, int, float, bool, NoneType)


@dataclass(frozen=True, slots=True)
class Request:
    """A line that the planner reads."""

    id: int
    config: str | None  # settings file of the catalog that asks; None: the environment alone
    name: str  # class of the question
    question: object


@dataclass(frozen=True, slots=True)
class ErrorData:
    """An error of ``reader.errors``, for ``spark_ext.session.errors`` behind Spark."""

    kind: str  # class of the error
    message: str
    hint: str | None
    context: object


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a question has no answer."""

    message: str  # one line, with the hint
    not_found: bool  # Spark has its own words for it
    error: ErrorData


@dataclass(frozen=True, slots=True)
class Reply:
    """A line that the planner writes: the answer to the request of this id, or its failure."""

    id: int
    answer: object
    failure: Failure | None


@cache
def questions() -> Mapping[str, tuple[type[Question[object]], type[object]]]:
    """Return each question with the class of its answer, by the name of its class."""
    found = {}
    for name, kind in vars(protocol).items():
        if isinstance(kind, type) and issubclass(kind, Question) and kind is not Question:
            found[name] = (kind, get_args(vars(kind)["__orig_bases__"][0])[0])
    return found


@cache
def field_types(kind: Any) -> Mapping[str, Any]:
    """Return the types of a message's fields, by name, in their order."""
    types = get_type_hints(kind)
    return {field.name: types[field.name] for field in fields(kind)}


# -- encode ----------------------------------------------------------------------------------------


def encode(value: object, kind: Any) -> Any:
    """Return a value of a type as ``json.dumps`` takes it."""
    return _encoder(kind)(value)


@cache
def _encoder(kind: Any) -> Callable[[Any], Any]:
    if kind is object or kind in _PLAIN:
        return lambda value: value
    if kind is bytes:
        return lambda value: base64.b64encode(value).decode()
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        some = [one for one in arguments if one not in _PLAIN]
        if not some:
            return lambda value: value
        inner = _encoder(some[0])
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        if arguments[0] in _PLAIN:
            return lambda value: value  # long lists of names and numbers
        inner = _encoder(arguments[0])
        return lambda value: [inner(one) for one in value]
    if origin is Mapping:
        inner = _encoder(arguments[1])
        return lambda value: {name: inner(one) for name, one in value.items()}

    types = field_types(kind)

    def encoded(value: object) -> dict[str, Any]:
        if type(value) is not kind:
            raise TypeError(f"{type(value).__name__} is no {kind.__name__}")
        return {name: encode(getattr(value, name), of) for name, of in types.items()}

    return encoded


# -- decode ----------------------------------------------------------------------------------------


def decode_request(line: bytes) -> tuple[Request, Question[object]]:
    """Return a request and its question. Raises PulsarLakeError for anything else."""
    request = decode(Request, json.loads(line))
    if request.name not in questions():
        raise PulsarLakeError(f"The planner does not know the question {request.name!r}")
    kind, _ = questions()[request.name]
    return request, decode(kind, request.question)


def decode(kind: type[T], value: object) -> T:
    """Return the value of a type. Raises PulsarLakeError, naming the field, if it is none."""
    found: T = _decoded(kind, value, getattr(kind, "__name__", str(kind)))
    return found


def _decoded(kind: Any, value: Any, path: str) -> Any:
    if kind is object:
        return value
    if kind is float and type(value) is int:
        return float(value)
    if kind in _PLAIN and type(value) is kind:
        return value
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is bytes and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if origin is UnionType:
        if value is None and NoneType in arguments:
            return None
        for one in arguments:
            if one not in _PLAIN or type(value) is one:
                return _decoded(one, value, path)
    # Loops, as a comprehension is one more call of Python's few at each level of a filter.
    if origin is tuple and isinstance(value, Sequence) and not isinstance(value, str):
        items = []
        for one in value:
            items.append(_decoded(arguments[0], one, f"{path}[]"))
        return tuple(items)
    if isinstance(value, Mapping):
        if origin is Mapping:
            inner = arguments[1]
            return {name: _decoded(inner, one, f"{path}[]") for name, one in value.items()}
        if isinstance(kind, type) and is_dataclass(kind):
            types = field_types(kind)
            for name in sorted(types.keys() ^ value.keys()):
                what = "lacks" if name in types else "does not have"
                raise PulsarLakeError(f"A message of the planner {what} the field {path}.{name}")
            found = {}
            for name, of in types.items():
                found[name] = _decoded(of, value[name], f"{path}.{name}")
            return kind(**found)
    raise PulsarLakeError(f"The field {path} of a message of the planner cannot be {value!r:.80}")
