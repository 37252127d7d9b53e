"""The cases, in the order in which they run. A new one is a module here and a line below."""

from __future__ import annotations

from benchmarks.case import Case
from benchmarks.cases import (
    cold_kernels,
    cold_queries,
    hot_queries,
    many_topics,
    offload,
    offload_memory,
    planning,
    reader,
    stages,
    sustained,
    table_size,
    time_range,
)

__all__ = ["CASES"]

_MODULES = (
    reader,
    stages,
    offload,
    cold_queries,
    hot_queries,
    time_range,
    table_size,
    planning,
    many_topics,
    sustained,
    cold_kernels,
    offload_memory,
)

CASES: dict[str, Case] = {one.name: one for module in _MODULES for one in module.CASES}
