"""Measure the peak of JVMs and memory while a command runs: `python -m tests.footprint make test`.

Every process that begins after this script is counted, because servers and daemons leave the
command's process tree. Run nothing else meanwhile. Linux only.
"""

import shutil
import subprocess
import sys
import time

from testbed.usage import command_name, process_ids, shared_bytes

_SECONDS = 0.5
"""Seconds between two samples."""


def main(command: list[str]) -> int:
    """Run the command, print the two peaks, and return the command's exit code."""
    known = set(process_ids())
    jvms = memory = 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            new = set(process_ids()) - known
            jvms = max(jvms, sum(command_name(pid) == "java" for pid in new))
            memory = max(memory, sum(map(shared_bytes, new)))
            time.sleep(_SECONDS)
    print(f"at most {jvms} JVMs and {memory / 2**30:.1f} GiB at once", file=sys.stderr)
    return process.returncode


if __name__ == "__main__":
    if not sys.argv[1:] or shutil.which(sys.argv[1]) is None:
        sys.exit("usage: python -m tests.footprint COMMAND [ARGUMENT ...]; COMMAND has to exist")
    sys.exit(main(sys.argv[1:]))
