"""The cases, in the order in which they run. A new one is a module here and a line below."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.bench import Bench, Result
from benchmarks.cases import reader, tiers

__all__ = ["CASES"]

CASES: dict[str, Callable[[Bench], list[Result]]] = {
    tiers.NAME: tiers.run,
    reader.NAME: reader.run,
}
