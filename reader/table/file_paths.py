"""The paths of a table's files stay below the table's directory.

The Delta protocol allows any URI in ``add.path``, percent-encoded. Our tables have names without a
directory; who can write a log could otherwise have any file that readers may open read as rows, or
rewritten.
"""

import re
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from reader.errors import CorruptError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SEPARATOR = re.compile(r"[/\\]")
# What has none of these is a plain path below.
_SUSPECT = r"^$|^[/\\]|\.\.|[%:\x00-\x1f]"
_MOST_ESCAPES = 4


def require_inside(paths: pa.ChunkedArray, uri: str) -> None:
    """Raises CorruptError for a path, as the log has it, that leads out of the table at ``uri``."""
    for path in paths.filter(pc.match_substring_regex(paths, _SUSPECT)).to_pylist():
        if not is_inside(path):
            raise CorruptError(
                f"the log of the table at {uri} names a file outside of it: {path[:200]!r}",
                hint="who has written to its _delta_log? Only the offloader should",
            )


def stored_name(path: str) -> str:
    """A file's name in the storage, of its path as the log has it: percent-encoded."""
    return unquote(path) if "%" in path else path


def is_inside(path: str) -> bool:
    """Whether it stays below its directory, however often its percent-escapes are decoded."""
    for _ in range(_MOST_ESCAPES):
        if not path or path[0] in "/\\" or "\0" in path or _SCHEME.match(path):
            return False
        if ".." in _SEPARATOR.split(path):
            return False
        decoded = unquote(path)
        if decoded == path:
            return True
        path = decoded
    return False
