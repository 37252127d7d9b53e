"""When this process began to import the package, and from where.

What is put there later is not what it runs. ``reader/__init__.py`` imports this module before
anything else.
"""

import time
from pathlib import Path

BEGUN_NS = time.time_ns()
"""In ns since the epoch."""

FOLDER = Path(__file__).parents[1]
"""The package's; a file or nothing where it lies in an archive."""


def folder_id(folder: Path = FOLDER) -> tuple[int, int] | None:
    """Return what is another value once another folder is at this path, also through a link."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


FOLDER_ID = folder_id()
