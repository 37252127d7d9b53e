"""How numba kernels are compiled: cached on disk, without the GIL, without reference counts.

Kernels own no memory. numba's reference counts would be atomic operations around every call;
without them kernels run and compile about a third faster. ``cache`` decides where compiled kernels
are kept; where no directory can be written, every process compiles for itself.
"""

import threading
import uuid
from collections.abc import Callable
from typing import Any

import numba

from reader.kernels.cache import KernelLocator, kernel_cache

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
_LOCATOR = f"{KernelLocator.__module__}.{KernelLocator.__qualname__}"
_LOCK = threading.Lock()


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    decorator: Any = numba.njit
    config: Any = numba.config
    with _LOCK:
        # numba has this setting for a process, not for a function. It is read by the decorator.
        before = getattr(config, "CACHE_LOCATOR_CLASSES", "")
        config.CACHE_LOCATOR_CLASSES = ",".join(filter(None, (_LOCATOR, before)))
        try:
            compiled = decorator(cache=True, **_OPTIONS, **options)(function)
        except RuntimeError:  # it cannot be cached
            compiled = None
        finally:
            config.CACHE_LOCATOR_CLASSES = before
    # A numba without that setting would cache by the function's own file alone.
    known = kernel_cache(function.__module__)
    if (
        compiled is None
        or known is None
        or compiled.stats.cache_path != str(known.directory)
        or not _name_files_apart(compiled)
    ):
        compiled = decorator(**_OPTIONS, **options)(function)
    return compiled


def _name_files_apart(compiled: Any) -> bool:
    """Let no two processes write compiled signatures of a kernel to one file.

    numba numbers these files by its index. Two processes that save two signatures at once choose
    the same number, and from then on the index names machine code of the other signature, which
    runs without an error. Return False if this numba names files in another way.
    """
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    numbered: Callable[[int], str] | None = getattr(index, "_data_name", None)
    if index is None or numbered is None:
        return False

    def name(number: int) -> str:
        return f"{numbered(number).removesuffix('.nbc')}.{uuid.uuid4().hex[:16]}.nbc"

    index._data_name = name  # noqa: SLF001 - numba has no other way
    return True


def kernel(function: Callable[..., Any]) -> Any:
    """A numba function, compiled when it is first called."""
    return _compiled(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A small kernel whose body goes into its callers."""
    return _compiled(function, forceinline=True)
