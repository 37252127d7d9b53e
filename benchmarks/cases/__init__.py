"""The cases, in the order in which they run. A new one is a module here and a line below."""

from __future__ import annotations

from benchmarks.case import Case
from benchmarks.cases import (
    cold_queries,
    hot_queries,
    offload,
    reader,
    table_size,
    time_range,
)

__all__ = ["CASES"]

CASES: dict[str, Case] = {one.name: one for one in (*reader.CASES, *offload.CASES, *cold_queries.CASES, *hot_queries.CASES, *time_range.CASES, *table_size.CASES)}
