"""Filters of Spark's, as the shim hands them over."""

from spark_ext.planner.protocol import Expression, Scalar


def call(op: str | None, *args: Expression) -> Expression:
    return Expression(op, args, (), None, None)


def column(*names: str) -> Expression:
    return Expression(None, (), names, None, None)


def literal(value: Scalar, kind: str) -> Expression:
    return Expression(None, (), (), kind, value)
