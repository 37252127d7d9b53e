"""Jars are what they were when their versions were chosen: SHA-256 of each, beside the pom.

Maven itself compares only with checksums that lie beside a jar on the same server.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from reader.errors import UnavailableError

__all__ = ["check_jars", "write_hashes"]


def check_jars(directory: Path, listed: Path, *, own: str = "") -> None:
    """Raises UnavailableError unless the folder has exactly the jars of the file ``listed``.

    ``own``: the name of one beside them that was made here.
    """
    lines = (line.split() for line in listed.read_text().splitlines())
    expected = {name: digest for digest, name in lines}
    found = _hashes(directory)
    found.pop(own, None)
    wrong = sorted(
        name for name in expected.keys() | found if expected.get(name) != found.get(name)
    )
    if wrong:
        raise UnavailableError(
            f"Maven gave other jars than those of {listed.name}: {', '.join(wrong[:3])}"
            + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""),
            hint="ask who serves Maven's repository; its local copy may be damaged: remove that",
        )


def write_hashes(directory: Path, listed: Path) -> None:
    """List the folder's jars, as ``sha256sum`` does."""
    lines = (f"{digest}  {name}\n" for name, digest in sorted(_hashes(directory).items()))
    listed.write_text("".join(lines))


def _hashes(directory: Path) -> dict[str, str]:
    return {
        jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in directory.glob("*.jar")
    }
