"""``pulsar-lake sql --explain``: the segments of each topic in a query, read or pruned, and why.

Spark's optimised plan says which filters reach a topic's rows. Filters on publish time are shown
where they are sure to hold for every row of the one topic that the query names: conjunctions of
comparisons with a constant. Anything else counts as no filter, so that "pruned" is never too much.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from reader.model import Topic
from reader.plan.pruning import Predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["predicates", "topics_of"]

_PART = r"(?:`((?:[^`]|``)+)`|(\w+))"
_REFERENCE = re.compile(rf"\bpulsar\s*\.\s*{_PART}\s*\.\s*{_PART}", re.IGNORECASE)
_COMPARISON = re.compile(r"__publishTime`? (>=|<=|>|<|=) TIMESTAMP '([^']+)'")
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def topics_of(query: str) -> list[Topic]:
    """The topics that a query's text names, once each occurrence, in order."""
    found = []
    for match in _REFERENCE.finditer(query):
        namespace, name = ((match[i] or match[i + 1]).replace("``", "`") for i in (1, 3))
        tenant, _, rest = namespace.partition("/")
        found.append(Topic(tenant, rest, name.split("$", 1)[0]))
    return found


def predicates(frame: DataFrame) -> list[Predicate]:
    """The comparisons of ``__publishTime`` that every row must satisfy; session in UTC."""
    found: list[Predicate] = []
    for condition in _conditions(frame._jdf.queryExecution().optimizedPlan()):
        plain = condition.replace("IS NOT NULL", "")
        if any(word in plain for word in (" OR ", "NOT ", "CASE ")):
            continue
        for op, text in _COMPARISON.findall(plain):
            time = datetime.fromisoformat(text).replace(tzinfo=UTC)
            found.append(Predicate("__publishTime", op, ((time - _EPOCH) // _MICROSECOND,)))
    return list(dict.fromkeys(found))


def _conditions(node: Any) -> list[str]:
    found = [node.condition().sql()] if node.nodeName() == "Filter" else []
    children = node.children()
    for i in range(children.size()):
        found += _conditions(children.apply(i))
    return found
