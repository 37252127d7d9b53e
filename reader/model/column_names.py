"""Names of columns: which names Spark cannot tell apart, and names that are free.

Spark compares names by ``String.equalsIgnoreCase`` in its resolver, and by ``String.toLowerCase``
where it looks for duplicates and reads Parquet. delta-rs lowers names as well.
"""

from collections.abc import Iterable

_DOT_ABOVE = "\u0307"

# Capital letters that came with Unicode 16 and 17. They are here so that a topic's columns do not
# depend on the Unicode version of the Python that reads it. Python 3.11 has Unicode 14.
_NEWER = {
    0x1C89: 0x1C8A,
    0xA7CB: 0x0264,
    0xA7CC: 0xA7CD,
    0xA7CE: 0xA7CF,
    0xA7D2: 0xA7D3,
    0xA7D4: 0xA7D5,
    0xA7DA: 0xA7DB,
    0xA7DC: 0x019B,
    **{letter: letter + 0x20 for letter in range(0x10D50, 0x10D66)},
    **{letter: letter + 0x1B for letter in range(0x16EA0, 0x16EB9)},
}


def name_key(name: str) -> str:
    """Return a text that is equal for two names exactly if they are the same name for Spark.

    The key is ``toLowerCase(toUpperCase(letter))`` of each letter, as in ``equalsIgnoreCase``. So
    the dotless i is an ``i``, and the long s an ``s``. The capital I with a dot above is ``i`` for
    ``equalsIgnoreCase``, and two letters for ``toLowerCase``: all three are the same name.
    """
    if name.isascii():
        return name.lower()
    return "".join(map(_letter_key, name)).replace("i" + _DOT_ABOVE, "i")


def same_name(name: str, other: str) -> bool:
    """Return whether two names are the same name for Spark."""
    return name_key(name) == name_key(other)


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return ``name``, ``name_2``, ``name_3``, …: the first that is the same name as none of
    ``taken``."""
    return ColumnNames(taken).add(name)


class ColumnNames:
    """Assigns names that differ for Spark, as `free_name` does, in linear time."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name_key(name) for name in taken}
        self._next: dict[str, int] = {}

    def add(self, name: str) -> str:
        """Return a free name for ``name``. It is taken from now on."""
        key = name_key(name)
        candidate, number = name, self._next.get(key, 2)
        while name_key(candidate) in self._taken:
            candidate, number = f"{name}_{number}", number + 1
        self._next[key] = number
        self._taken.add(name_key(candidate))
        return candidate


def _letter_key(letter: str) -> str:
    # Java's methods for a single letter leave alone what only longer texts are the case of (ß, ŉ).
    newer = _NEWER.get(ord(letter))
    if newer is not None:
        return chr(newer)
    upper = letter.upper()
    upper = upper if len(upper) == 1 else letter
    if upper == "İ":
        return "i"
    lower = upper.lower()
    return lower if len(lower) == 1 else upper
