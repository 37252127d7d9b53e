"""The cases, in the order in which they run. A new one is a module here and a line below."""

from __future__ import annotations

from benchmarks.case import Case
from benchmarks.cases import reader

__all__ = ["CASES"]

CASES: dict[str, Case] = {one.name: one for one in (*reader.CASES,)}
