"""Keeps pandas out of a process of our own: pyarrow would import it with its first Python value.

That is a third of a second of CPU, in a command line or a planner which never shows a data frame.
Not for a process in which others' code runs: there pandas has to be what it is.
"""

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is kept out of this process", name=name)


def keep_out_pandas() -> None:
    """From now on importing pandas fails in this process, as where it is not installed."""
    if not any(isinstance(one, _NoPandas) for one in sys.meta_path):
        sys.meta_path.insert(0, _NoPandas())
