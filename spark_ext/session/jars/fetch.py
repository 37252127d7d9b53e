"""The jars of a session: there and checked, or fetched now."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from reader.errors import ConfigurationError, UnavailableError
from spark_ext.session.jars.folders import jars_folder, locked, open_folder
from spark_ext.session.jars.ivy import retrieve
from spark_ext.session.jars.jar_list import GROUPS, LIST, Jar, listed, sha256_of
from spark_ext.session.jars.repositories import near_copies, spark_settings
from spark_ext.session.jars.shim import shim_jar

__all__ = ["class_path", "missing_jars", "session_jars"]

_EVERY_SECONDS = 5.0
_MARK = ".checked-"
_WORK = ".fetching-"


def session_jars(
    groups: Collection[str] = GROUPS,
    conf: Mapping[str, str] | None = None,
    progress: Callable[[str], None] | None = None,
    *,
    again: bool = False,
    file: Path = LIST,
) -> tuple[Path, ...]:
    """The shim's jar and those of the groups, which are fetched on first use.

    ``conf``: Spark's settings, which name repositories. ``progress`` gets a line now and then
    while it fetches (default: standard error). ``again``: check those that are there once more.
    Processes that need the same at one time wait for the first. ``file`` lists the jars. In a
    folder that can only be read they are checked each time. Raises ConfigurationError for a folder
    that others may write to and without Java, UnavailableError if jars cannot be had.
    """
    folder = jars_folder()
    wanted = listed(groups, file)
    if wanted:
        complete = not again and _complete(folder, wanted)
        open_folder(folder, create=not complete)
        if not complete:
            try:
                _prepare(folder, wanted, spark_settings(conf or {}), progress or _to_stderr, again)
            except OSError as error:
                if not all(_right(folder / jar.file, jar) for jar in wanted):
                    raise ConfigurationError(
                        f"jars for Spark cannot be written to {folder}: {error.strerror or error}",
                        hint="free space there, or set PULSAR_LAKE_CACHE to another folder",
                    ) from error
    return (shim_jar(), *(folder / jar.file for jar in wanted))


def missing_jars(groups: Collection[str] = GROUPS, *, file: Path = LIST) -> tuple[Jar, ...]:
    """Those of the groups that are not in the folder, or are not what they have to be."""
    folder = jars_folder()
    return tuple(jar for jar in listed(groups, file) if not _right(folder / jar.file, jar))


def class_path(jars: Sequence[Path]) -> str:
    """The jars as a JVM's class path."""
    return ":".join(map(str, jars))


def _complete(folder: Path, wanted: Sequence[Jar]) -> bool:
    """Whether all are there and were checked when they came: hashes are not computed each time."""
    files = (folder / jar.file for jar in wanted)
    return all(one.is_file() for one in (*_marks(folder, wanted), *files))


def _marks(folder: Path, wanted: Sequence[Jar]) -> list[Path]:
    """A file for each group, which says that its jars were checked."""
    found = []
    for group in {jar.group: None for jar in wanted}:
        text = "".join(jar.sha256 for jar in wanted if jar.group == group)
        found.append(folder / f"{_MARK}{hashlib.sha256(text.encode()).hexdigest()[:16]}")
    return found


def _prepare(
    folder: Path,
    wanted: Sequence[Jar],
    conf: Mapping[str, str],
    tell: Callable[[str], None],
    again: bool,
) -> None:
    with locked(folder):
        if again or not _complete(folder, wanted):  # else the process that had the lock did it
            _fill(folder, wanted, conf, tell)
            for mark in _marks(folder, wanted):
                mark.touch()


def _fill(
    folder: Path, wanted: Sequence[Jar], conf: Mapping[str, str], tell: Callable[[str], None]
) -> None:
    """Every jar in place: who put it there does not matter, its hash does."""
    for mark in folder.glob(f"{_MARK}*"):
        mark.unlink()
    for left in folder.glob(f"{_WORK}*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    lacking = []
    for jar in wanted:
        place = folder / jar.file
        if _right(place, jar):
            continue
        if place.is_file():
            tell(f"pulsar-lake: {place} is not the file it has to be, and will be replaced")
        if not any(_take(near, folder, jar) for near in near_copies(jar, conf)):
            lacking.append(jar)
    if not lacking:
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=_WORK) as temporary:
        _fetch(folder, lacking, Path(temporary), conf, tell)


def _fetch(
    folder: Path,
    lacking: Sequence[Jar],
    work: Path,
    conf: Mapping[str, str],
    tell: Callable[[str], None],
) -> None:
    total = len(lacking)
    tell(f"pulsar-lake: fetching {total} jars for Spark (once) ...")
    told = time.monotonic()

    def begun(count: int) -> None:
        nonlocal told
        if time.monotonic() - told > _EVERY_SECONDS:
            told = time.monotonic()
            tell(f"pulsar-lake: {count + 1} of {total} ...")

    # One first: a network without a way out is waited for once, not for each of them.
    reason = ""
    for some, step in ((lacking[:1], "first"), (lacking[1:], "rest")):
        if some and not reason:
            reason = retrieve(some, work / step, conf, begun if step == "rest" else lambda _: None)
    left = []
    for jar in lacking:
        come = list(work.rglob(jar.file))  # also in Ivy's cache, if another one failed
        if come and not _right(come[0], jar):
            reason = f"{jar.file} came with another SHA-256 than it has to have"
        if not any(_take(file, folder, jar) for file in come):
            left.append(jar)
    if left:
        raise UnavailableError(
            f"{len(left)} of {total} jars for Spark could not be fetched: {reason}",
            hint=f"put them into {folder}: `pulsar-lake setup --list` lists them; "
            "proxies and mirrors are those of Spark and Maven",
        )


def _take(source: Path, folder: Path, jar: Jar) -> bool:
    """Copy it, check the copy, and only then give it its name."""
    if not source.is_file():
        return False
    with tempfile.TemporaryDirectory(dir=folder, prefix=_WORK) as temporary:
        copy = Path(temporary, jar.file)
        shutil.copyfile(source, copy)
        if not _right(copy, jar):
            return False
        copy.rename(folder / jar.file)
    return True


def _right(file: Path, jar: Jar) -> bool:
    try:
        return sha256_of(file) == jar.sha256
    except OSError:
        return False


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201
