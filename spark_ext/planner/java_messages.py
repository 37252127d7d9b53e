"""The messages as records in Java: ``python -m spark_ext.planner.java_messages`` writes them."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from spark_ext.planner import protocol
from spark_ext.planner.encoding import ErrorData, Failure, Reply, Request, field_types, questions
from spark_ext.planner.protocol import Scalar

TARGET = Path(__file__).parents[1] / "jvm/io/pulsarlake/spark/planner/Messages.java"

_TYPES = {str: "String", int: "long", float: "double", bool: "boolean", bytes: "byte[]"}
_BOXED = {"long": "Long", "double": "Double", "boolean": "Boolean"}
_HEAD = """package io.pulsarlake.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;

/**
 * What is asked of the planner, and what it answers. Written by {@code
 * spark_ext.planner.java_messages} out of {@code spark_ext/planner/protocol.py}, which explains the
 * fields: change that.
 */
public final class Messages {
  private Messages() {}

  /** A question, whose answer is an A. */
  public interface Question<A> {
    Class<A> answer();
  }
"""


def java_source() -> str:
    """Return the text of the file."""
    return _HEAD + "".join(_records()) + "}\n"


def _records() -> Iterator[str]:
    kinds = [one for one in vars(protocol).values() if is_dataclass(one) and isinstance(one, type)]
    for kind in (Request, ErrorData, Failure, Reply, *kinds):
        yield f"\n  /** {(kind.__doc__ or '').splitlines()[0]} */\n"
        given = [f"{_java(of)} {_camel(name)}" for name, of in field_types(kind).items()]
        head = f"  public record {kind.__name__}("
        text = head + ", ".join(given) + ")"
        if len(text) > 95:
            text = head + "".join(f"\n      {one}," for one in given)[:-1] + ")"
        if kind.__name__ not in questions():
            yield f"{text} {{}}\n"
            continue
        answer = questions()[kind.__name__][1].__name__
        yield f"""{text}
      implements Question<{answer}> {{
    @Override
    public Class<{answer}> answer() {{
      return {answer}.class;
    }}
  }}
"""


def _java(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind == Scalar:
        return "Object"
    if kind is object:
        return "JsonNode"
    if origin is UnionType:
        (inner,) = (one for one in arguments if one is not NoneType)
        return _boxed(inner)
    if origin is tuple:
        return f"List<{_boxed(arguments[0])}>"
    if origin is Mapping:
        return f"Map<String, {_boxed(arguments[1])}>"
    return _TYPES.get(kind) or str(kind.__name__)


def _boxed(kind: Any) -> str:
    return _BOXED.get(_java(kind), _java(kind))


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(one.capitalize() for one in more)


if __name__ == "__main__":
    TARGET.write_text(java_source())
