"""When this process began to import the package. What is put there later is not what it runs.

``reader/__init__.py`` imports it before anything else.
"""

from __future__ import annotations

import time

__all__ = ["BEGUN_NS"]

BEGUN_NS = time.time_ns()
"""In ns since the epoch."""
