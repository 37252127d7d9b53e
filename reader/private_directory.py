"""Directories that hold what is believed or run: caches, state, compiled code.

Nobody but this user and root may write there: counts and pruning believe learned publish times,
and compiled kernels and jars are run. Nor may a directory above it, or above what a link leads to,
belong to another user, who could put another one in its place. Access lists are not looked at, nor
who else may write to the directories above: volumes of pods are open to everybody, which is one.
One that others may write to is refused, not mended: they may have left something there, and who
named it may share it on purpose.

The sources of kernels are hashed with this module (``reader.kernels.cache``): it imports none of
this package.
"""

import errno
import logging
import os
import stat
from functools import cache
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class NotPrivateError(PermissionError):
    """Others may write there; ``strerror`` says who."""


def check_private(directory: Path, *, shown: bool = False) -> None:
    """Raises NotPrivateError where others may write, other OSErrors as ``Path.stat`` does.

    ``shown``: what is there is shown and nothing else, so root may look at what another user has.
    """
    found = directory.stat()
    user = os.geteuid()
    if found.st_mode & _OTHERS_WRITE:
        raise NotPrivateError(errno.EPERM, "others may write there", str(directory))
    if shown and user == 0:
        return
    if found.st_uid not in (user, 0):
        raise NotPrivateError(errno.EPERM, "it belongs to another user", str(directory))
    for parent in {*directory.absolute().parents, *directory.resolve().parents}:
        if parent.stat().st_uid not in (user, 0):
            reason = f"{parent}, above it, belongs to another user"
            raise NotPrivateError(errno.EPERM, reason, str(directory))


def make_private(directory: Path, mode: int = 0o700) -> None:
    """Make it, and what is missing above it, unless it is there already.

    ``mode``: of the directory itself, 0o755 where its content is no secret. Raises as
    ``check_private``, and as ``Path.mkdir``.
    """
    if not directory.parent.exists():
        make_private(directory.parent, 0o755)
    directory.mkdir(mode=mode, exist_ok=True)
    check_private(directory)


@cache
def warn_once(text: str) -> None:
    """A line in this process's log (standard error, unless it is set up); the same one once."""
    logging.getLogger(__name__).warning("%s", text)
