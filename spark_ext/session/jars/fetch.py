"""The jars of a session: in the folder and checked, or fetched now."""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from reader.errors import ConfigurationError, UnavailableError
from spark_ext.session.jars.folders import jars_folder, locked, open_folder
from spark_ext.session.jars.ivy import retrieve
from spark_ext.session.jars.jar_list import GROUPS, LIST, Jar, listed, sha256_of
from spark_ext.session.jars.shim import shim_jar

_MARK = ".checked-"
_WORK = ".fetching-"


def session_jars(
    groups: Collection[str] = GROUPS,
    mirror: str = "",
    progress: Callable[[str], None] | None = None,
    *,
    again: bool = False,
    file: Path = LIST,
) -> tuple[Path, ...]:
    """Return the shim's jar and the jars of the groups. Fetch them on first use.

    ``mirror``: URL of the Maven repository to fetch from, or "" for Ivy's default.
    ``progress``: is called with lines for people (default: standard error).
    ``again``: check the hashes of jars that were checked before.
    ``file``: lists the jars.
    A process waits for another one that fetches into the same folder. In a folder that is
    read-only, hashes are checked each time. Raises ConfigurationError if others may write to the
    folder, or Java is missing; UnavailableError if jars cannot be fetched.
    """
    folder = jars_folder()
    wanted = listed(groups, file)
    if wanted:
        complete = not again and _complete(folder, wanted)
        open_folder(folder, create=not complete)
        if not complete:
            try:
                _prepare(folder, wanted, mirror, progress or _to_stderr, again)
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
    folder: Path, wanted: Sequence[Jar], mirror: str, log: Callable[[str], None], again: bool
) -> None:
    with locked(folder):
        if again or not _complete(folder, wanted):  # else the process that had the lock did it
            _fill(folder, wanted, mirror, log)
            for mark in _marks(folder, wanted):
                mark.touch()


def _fill(folder: Path, wanted: Sequence[Jar], mirror: str, log: Callable[[str], None]) -> None:
    """Put every jar in its place. Any file with the right hash will do."""
    for mark in folder.glob(f"{_MARK}*"):
        mark.unlink()
    for unfinished in folder.glob(f"{_WORK}*"):  # by a process that was killed
        shutil.rmtree(unfinished, ignore_errors=True)
    missing = []
    for jar in wanted:
        place = folder / jar.file
        if _right(place, jar):
            continue
        if place.is_file():
            log(f"pulsar-lake: {place} is not the file it has to be, and will be replaced")
        if not _take(Path.home() / ".m2" / "repository" / jar.repository_path, folder, jar):
            missing.append(jar)
    if missing:
        log(f"pulsar-lake: fetching {len(missing)} jars for Spark (once) ...")
        with tempfile.TemporaryDirectory(dir=folder, prefix=_WORK) as temporary:
            _fetch(folder, missing, Path(temporary), mirror)


def _fetch(folder: Path, missing: Sequence[Jar], work: Path, mirror: str) -> None:
    # One first: a network without a way out is waited for once, not for each jar.
    reason = retrieve(missing[:1], work / "first", mirror)
    if not reason and missing[1:]:
        reason = retrieve(missing[1:], work / "rest", mirror)
    remaining = []
    for jar in missing:
        files = list(work.rglob(jar.file))  # also in Ivy's cache, if another jar failed
        if files and not _right(files[0], jar):
            reason = f"{jar.file} came with another SHA-256 than it has to have"
        if not any(_take(file, folder, jar) for file in files):
            remaining.append(jar)
    if remaining:
        raise UnavailableError(
            f"{len(remaining)} of {len(missing)} jars for Spark could not be fetched: {reason}",
            hint=f"put them into {folder}: `pulsar-lake setup --list` lists them; or set "
            "spark.jars_mirror, or name your proxy in JAVA_TOOL_OPTIONS",
        )


def _take(source: Path, folder: Path, jar: Jar) -> bool:
    """Copy the file, check the copy, and only then give it the jar's name."""
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
