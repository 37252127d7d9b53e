"""How numba kernels are compiled: cached on disk, without the GIL, without reference counts.

Kernels own no memory. numba's reference counts would be atomic operations around every call;
without them kernels run and compile about a third faster.
The cache lies beside the sources, in the user's cache directory, or where NUMBA_CACHE_DIR says;
where none of them can be written, every process compiles for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["inlined", "kernel"]

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    decorator: Any = njit
    try:
        return decorator(cache=True, **_OPTIONS, **options)(function)
    except RuntimeError:  # no place to cache
        return decorator(**_OPTIONS, **options)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """A numba function, compiled when it is first called."""
    return _compiled(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A small kernel whose body goes into its callers."""
    return _compiled(function, forceinline=True)
