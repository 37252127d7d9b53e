"""Compiles Java of `testbed` against the server's jars, once for each state of its sources."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed.server.jars import JarsError


def compiled(name: str, sources: Path, jars: Path) -> Path:
    """Return a folder with the classes of all Java files in `sources`; it lies beside the jars.

    name: of the folder, before the sources' hash.
    Raises JarsError if there is no compiler, or if the sources do not compile.
    """
    files = sorted(sources.glob("*.java"))
    digest = hashlib.sha256(jars.name.encode())
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    target = jars.parent / f"{name}-{digest.hexdigest()[:12]}"
    with (jars.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return target
        home = os.environ.get("JAVA_HOME")
        javac = str(Path(home, "bin", "javac")) if home else shutil.which("javac")
        if javac is None:
            raise JarsError("`javac` (a JDK, 17 or newer) is not on the PATH")
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=jars.parent))
        try:
            done = subprocess.run(
                [javac, "-proc:none", "-d", str(work), "-cp", f"{jars}/*", *map(str, files)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if done.returncode != 0:
                raise JarsError(f"the Java sources of {sources} do not compile:\n{done.stdout}")
            work.rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return target
