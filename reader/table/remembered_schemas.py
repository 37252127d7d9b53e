"""The schema versions that a table remembers, as the text of a table property.

A registry forgets: a deleted schema is no longer listed, and one that was deleted by force gives
its number to another one. So the table keeps every definition that was registered when ledgers
were added, as long as they fit.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from functools import lru_cache

from reader.model import SchemaInfo

MOST_BYTES = 1 << 17
"""The maximum length of the property. The log repeats it in each change of columns."""
_MOST_PLAIN = 4 << 20
"""Its maximum length before it is compressed. A snapshot token, which anybody can type, has it."""


def encode_schemas(schemas: Sequence[SchemaInfo]) -> str:
    """Return the property. Of more than fit, it has the newest."""
    kept = list(schemas)
    while kept:
        text, plain = _encoded(kept)
        share = min(MOST_BYTES / len(text), _MOST_PLAIN / plain)
        if share >= 1:
            return text
        kept = kept[len(kept) - int(0.9 * share * len(kept)) :]
    return ""


def _encoded(schemas: Sequence[SchemaInfo]) -> tuple[str, int]:
    """(the text, its length before it is compressed)."""
    value = [
        [one.life, one.version, one.timestamp, one.type, one.definition, dict(one.properties)]
        for one in schemas
    ]
    plain = json.dumps(value, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(plain, 9)).decode(), len(plain)


@lru_cache(maxsize=16)
def decode_schemas(text: str) -> tuple[SchemaInfo, ...]:
    """Return what ``encode_schemas`` was given, or nothing for any other text."""
    if not text:
        return ()
    try:
        plain = zlib.decompressobj().decompress(base64.b64decode(text), _MOST_PLAIN)
        return tuple(
            SchemaInfo(version, type_, definition, properties, timestamp=timestamp, life=life)
            for life, version, timestamp, type_, definition, properties in json.loads(plain)
        )
    except (ValueError, TypeError, zlib.error):
        return ()
